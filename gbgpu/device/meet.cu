// How GPUs whose graphs loop wait for each other: kernels of one thread. Each GPU has words of its own: how often all have
// met, how often they were told something, whether one was lost; what it was told, and to which meeting each has come.
// GPUS, OF (the parameters with the words of each GPU), ALL (their names) and PATIENCE (nanoseconds that GPUs wait for each
// other) are defined before this text.

typedef long long i64;
typedef unsigned long long u64;

extern "C" __device__ void cudaGraphSetConditional(u64, unsigned);

enum { MET, ASKED, LOST, TOLD = 16, CAME = 32 };

__device__ i64 now() {
    i64 t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}
__device__ i64 heard(const i64 *p) {
    i64 v;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
__device__ void say(i64 *p, i64 v) { asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }

// Until a word is at least v; or one is lost, which all and the host are told.
__device__ bool wait(i64 *const *all, i64 me, const i64 *p, i64 v, volatile i64 *lost) {
    i64 until = 0;
    for (unsigned tries = 1; heard(p) < v; tries++) {
        if (tries & 0xff) continue;
        if (heard(all[me] + LOST)) return false;
        if (!until) until = now() + PATIENCE;
        else if (now() > until) {
            *lost = 1;
            for (int i = 0; i < GPUS; i++)
                say(all[i] + LOST, 1);
            return false;
        }
    }
    return true;
}

// All come here before one goes on.
extern "C" __global__ void meet(OF, i64 me, volatile i64 *lost) {
    i64 *const all[] = {ALL};
    const i64 meeting = ++all[me][MET];
    for (int i = 0; i < GPUS; i++)
        if (i != me) say(all[i] + CAME + 16 * me, meeting);
    for (int i = 0; i < GPUS; i++)
        if (i != me && !wait(all, me, all[me] + CAME + 16 * i, meeting, lost)) return;
}

// The first GPU tells the others what goes on.
extern "C" __global__ void tell(OF, u64 handle, const i64 *what) {
    i64 *const all[] = {ALL};
    const i64 told = heard(all[0] + LOST) ? 0 : what[0], asked = ++all[0][ASKED];
    for (int i = 1; i < GPUS; i++)
        say(all[i] + TOLD, asked << 8 | told);
    cudaGraphSetConditional(handle, (unsigned)told);
}

// Another one does what it is told; words are cleared unless that is nothing.
extern "C" __global__ void follow(OF, i64 me, volatile i64 *lost, u64 handle, i64 *words, i64 used) {
    i64 *const all[] = {ALL};
    const i64 asked = ++all[me][ASKED];
    const bool there = wait(all, me, all[me] + TOLD, asked << 8, lost);
    const i64 told = there ? heard(all[me] + TOLD) & 255 : 0;
    for (i64 i = 0; told && i < used; i++)
        words[i] = 0;
    cudaGraphSetConditional(handle, (unsigned)told);
}
