#pragma once
#include <unistd.h>

#define vm_page_size (static_cast<unsigned long>(sysconf(_SC_PAGESIZE)))
#ifndef PAGE_SIZE
#define PAGE_SIZE vm_page_size
#endif
