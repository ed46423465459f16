// Products of matrices: whose an entry is, and one term.

struct Tables {
    const i64 *kstarts, *kbounds, *jstarts, *jbounds;
    i64 kp, jp;
    DEVICE i64 inner(i64 slot) const { return USES_INNER ? user_id(slot, kstarts, kbounds, kp) : 0; }
    DEVICE i64 col(i64 slot) const { return USES_COL ? user_id(slot, jstarts, jbounds, jp) : 0; }
};

struct Operands {
    const T_A *avals;
    i64 astride;
    const T_B *bvals;
    i64 bstride;
    DEVICE Z operator()(i64 e, i64 f, i64 row, i64 inner, i64 col) const {
        return term(READS_A ? load(avals + e * astride) : T_A(), READS_B ? load(bvals + f * bstride) : T_B(), row,
                    inner, col);
    }
};
