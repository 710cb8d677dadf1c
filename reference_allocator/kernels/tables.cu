// The same C ABI for device memory: under nvcc every `launch_*` in the kernel files launches instead of looping.
#include "tables.cpp"
