// What else a loop is made of that is one kernel: copies and constants. Those of a `few` bytes are one thread's.
#define EACH(i, n) for (i64 i = thread_id(); i < (n); i += thread_count())

KERNEL set_bytes(unsigned char *out, i64 n, i64 byte) {
    if (((u64)out | n) & 7) {
        EACH(i, n) out[i] = (unsigned char)byte;
        return;
    }
    const u64 word = 0x0101010101010101ull * (u64)(byte & 255);
    EACH(i, n >> 3) ((u64 *)out)[i] = word;
}
KERNEL copy_bytes(unsigned char *out, const unsigned char *in, i64 n) {
    if (((u64)out | (u64)in | n) & 7) EACH(i, n) out[i] = in[i];
    else EACH(i, n >> 3) ((u64 *)out)[i] = ((const u64 *)in)[i];
}
KERNEL set_few(unsigned char *out, i64 n, i64 byte) {
    for (i64 i = 0; i < n; i++)
        out[i] = (unsigned char)byte;
}
KERNEL copy_few(unsigned char *out, const unsigned char *in, i64 n) {
    if (((u64)out | (u64)in | n) & 7)
        for (i64 i = 0; i < n; i++)
            out[i] = in[i];
    else
        for (i64 i = 0; i < n >> 3; i++)
            ((u64 *)out)[i] = ((const u64 *)in)[i];
}
template <class T> DEVICE void fill(T *out, T value, i64 n) {
    EACH(i, n) out[i] = value;
}
KERNEL fill1(unsigned char *out, unsigned char value, i64 n) { fill(out, value, n); }
KERNEL fill2(unsigned short *out, unsigned short value, i64 n) { fill(out, value, n); }
KERNEL fill4(u32 *out, u32 value, i64 n) { fill(out, value, n); }
KERNEL fill8(u64 *out, u64 value, i64 n) { fill(out, value, n); }

template <class T> DEVICE void copy_counted(T *out, const T *in, const i64 *count, i64 n) {
    const i64 end = count[0] < n ? count[0] : n;
    EACH(i, end) out[i] = in[i];
}
KERNEL copy1(unsigned char *out, const unsigned char *in, const i64 *count, i64 n) { copy_counted(out, in, count, n); }
KERNEL copy2(unsigned short *out, const unsigned short *in, const i64 *count, i64 n) {
    copy_counted(out, in, count, n);
}
KERNEL copy4(u32 *out, const u32 *in, const i64 *count, i64 n) { copy_counted(out, in, count, n); }
KERNEL copy8(u64 *out, const u64 *in, const i64 *count, i64 n) { copy_counted(out, in, count, n); }
