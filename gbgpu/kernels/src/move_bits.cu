KERNEL move_bits(i64 n, const i64 *words, i64 begin, i64 at, i64 *out_words) {
    for (i64 q = thread_id(); q < n; q += thread_count())
        if (bit(words, begin + q)) mark(out_words, at + q);
}
