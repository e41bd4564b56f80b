// The registration functions of the ISA objects. Each overrides the table's entries that its objects implement; nothing
// else is exported from them.
#ifndef MLAP_KERNELS_REGISTRATION_H_
#define MLAP_KERNELS_REGISTRATION_H_

#include "kernels/kernel_table.h"

namespace mlap {

void UseGemmScalar(KernelTable* table);
void UseRowKernelsScalar(KernelTable* table);

void UseGemmAvx2(KernelTable* table);
void UseRowKernelsAvx2(KernelTable* table);

void UseGemmAvxVnni(KernelTable* table);

void UseGemmAvx512(KernelTable* table);
void UseRowKernelsAvx512(KernelTable* table);

void UseGemmAvx512Vnni(KernelTable* table);

void UseGemmAvx512Bf16(KernelTable* table);

void UseGemmAmx(KernelTable* table);

}  // namespace mlap

#endif  // MLAP_KERNELS_REGISTRATION_H_
