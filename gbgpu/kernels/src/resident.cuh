// What one kernel that runs a whole loop is put together with (kernels/resident.py): its arguments, and where all its
// blocks meet.

typedef unsigned long long Bits64;

// An argument of any type, as the bits that it has.
struct Arg {
    Bits64 bits;
    template <class T> __device__ __forceinline__ operator T() const { return *(const T *)&bits; }
};

struct Meeting {
    unsigned arrived, apart[31]; // a line of the cache for those who arrive, and one for those who wait
    Bits64 said;                   // meetings so far << 8 | what the last one told
};

const unsigned LOST = 255;            // told where a block did not come
const Bits64 PATIENCE = 8000000000ull;  // nanoseconds that blocks wait for each other

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
            Bits64 v, until = 0;
            for (unsigned tries = 1; (v = heard(&at->said)) >> 8 != meetings; tries++) {
                if ((v & 255) == LOST) break;
                if (tries & 0xfff) continue;
                if (!until) until = now() + PATIENCE;
                else if (now() > until) {
                    say(&at->said, v = LOST);
                    break;
                }
            }
            told = v & 255;
        }
    }
    __syncthreads();
    return told;
}
