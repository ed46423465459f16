// What one kernel that runs a whole loop is put together with (kernels/resident.py): its arguments, and where all its
// blocks meet. PATIENCE, nanoseconds that blocks wait for each other, is defined before this text.

typedef unsigned long long Bits64;

// An argument of any type, as the bits that it has.
struct Arg {
    Bits64 bits;
    template <class T> __device__ __forceinline__ operator T() const { return *(const T *)&bits; }
};

struct Meeting {
    unsigned arrived, apart[31]; // a line of the cache for those who arrive, and one for those who wait
    Bits64 said, apart2[15];     // meetings so far << 8 | what the last one told
#ifdef GPUS
    Bits64 told, apart3[15];     // meetings of all GPUs << 8 | what the first one told
    Bits64 came[GPUS * 16];      // meetings of all GPUs that each has come to, where the first one looks
#endif
};

const unsigned LOST = 255; // told where a block did not come

__device__ __forceinline__ Bits64 now() {
    Bits64 t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

__device__ __forceinline__ Bits64 heard(const Bits64 *p) {
    Bits64 v;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

// Comes, and sees what those who came before have written.
__device__ __forceinline__ unsigned come(unsigned *p) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(p) : "memory");
    return before;
}

__device__ __forceinline__ void say(Bits64 *p, Bits64 v) {
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// Waits until something has been said in this meeting; returns what. `hear` reads the word.
template <class Hear> __device__ __forceinline__ unsigned wait(Bits64 meeting, Hear hear) {
    Bits64 v, until = 0;
    for (unsigned tries = 1; (v = hear()) >> 8 != meeting; tries++) {
        if ((v & 255) == LOST) return LOST;
        if (tries & 0xfff) continue;
        if (!until) until = now() + PATIENCE;
        else if (now() > until) return LOST;
    }
    return v & 255;
}

// All blocks come here before one goes on, and see what all have written. One thread of the last that comes does what is
// to be done alone; what that returns (below 255) is told to all.
template <class Alone>
__device__ __forceinline__ unsigned meet(Meeting *at, Bits64 &meetings, Alone alone) {
    __shared__ unsigned told;
    __syncthreads();
    meetings++;
    if (threadIdx.x == 0) {
        if (come(&at->arrived) == gridDim.x - 1) {
            at->arrived = 0;
            told = alone();
            say(&at->said, meetings << 8 | told);
        } else {
            told = wait(meetings, [&] { return heard(&at->said); });
            if (told == LOST) say(&at->said, LOST);
        }
    }
    __syncthreads();
    return told;
}

#ifdef GPUS
struct All {
    Meeting *of[GPUS]; // of each GPU, in its own memory
    Bits64 me, meetings;
};

__device__ __forceinline__ Bits64 heard_by_all(const Bits64 *p) {
    Bits64 v;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void say_to_all(Bits64 *p, Bits64 v) {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// The same for the blocks of all GPUs. The first GPU does its part alone before one goes on, and tells the others, which
// do theirs then: `alone` is given what was told (1 on the first GPU), and returns what is told on.
template <class Alone>
__device__ __forceinline__ unsigned meet_all(Meeting *at, Bits64 &meetings, All &all, Alone alone) {
    all.meetings++;
    return meet(at, meetings, [&]() -> unsigned {
        const Bits64 meeting = all.meetings;
        unsigned told = 1;
        if (all.me) {
            say_to_all(&all.of[0]->came[16 * all.me], meeting << 8 | 1);
            told = wait(meeting, [&] { return heard_by_all(&at->told); });
            return told == LOST ? LOST : alone(told);
        }
        for (int i = 1; i < GPUS && told != LOST; i++)
            told = wait(meeting, [&] { return heard_by_all(&at->came[16 * i]); });
        told = told == LOST ? LOST : alone(told);
        for (int i = 0; i < GPUS; i++)
            say_to_all(&all.of[i]->told, told == LOST ? LOST : meeting << 8 | told);
        return told;
    });
}
#endif
