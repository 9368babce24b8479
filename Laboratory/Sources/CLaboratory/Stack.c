// SPDX-License-Identifier: Apache-2.0

// The calling thread's stack, and the names of its functions.
//
// The stack is unwound with the compiler's exception tables. Following frame pointers is unsafe: some code does not
// keep them, such as the C library's first function of a thread, and would yield arbitrary values.

#include "CLaboratory.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

typedef struct {
  uintptr_t *addresses;
  uintptr_t first;
  int capacity;
  int count;
} walk;

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *argument) {
  walk *walk = argument;
  uintptr_t address = _Unwind_GetIP(context);
  if (address == 0 || walk->count == walk->capacity) return _URC_END_OF_STACK;
  // Skips the frames of the unwinder itself, of which sanitizers add more.
  if (walk->count == 0 && address != walk->first) return _URC_NO_REASON;
  walk->addresses[walk->count++] = address;
  return _URC_NO_REASON;
}

__attribute__((noinline)) int lab_stack(uintptr_t *addresses, int capacity) {
  walk walk = {
    .addresses = addresses, .first = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)),
    .capacity = capacity};
  _Unwind_Backtrace(note_frame, &walk);
  return walk.count;
}

struct lab_symbols {
  ElfW(Sym) *symbols;
  size_t count;
  char *names;
  size_t size;
  // The address at which the file says it begins in memory.
  uint64_t base;
};

// Reads part of a file into memory that the caller frees. Returns null if the file is too short.
static void *read_part(int file, uint64_t size_of_file, uint64_t offset, uint64_t size) {
  if (size == 0 || offset > size_of_file || size > size_of_file - offset) return NULL;
  char *bytes = malloc(size);
  for (uint64_t done = 0; bytes && done < size;) {
    ssize_t count = pread(file, bytes + done, size - done, (off_t)(offset + done));
    if (count > 0) {
      done += (uint64_t)count;
    } else {
      free(bytes);
      bytes = NULL;
    }
  }
  return bytes;
}

static int read_base(int file, uint64_t size_of_file, const ElfW(Ehdr) *header, uint64_t *base) {
  if (header->e_phentsize != sizeof(ElfW(Phdr))) return 0;
  ElfW(Phdr) *segments = read_part(file, size_of_file, header->e_phoff, header->e_phnum * sizeof(ElfW(Phdr)));
  if (!segments) return 0;
  uint64_t lowest = UINT64_MAX;
  for (int index = 0; index < header->e_phnum; index++) {
    const ElfW(Phdr) *segment = &segments[index];
    // A segment is mapped from the beginning of its page.
    if (segment->p_type != PT_LOAD || segment->p_offset > segment->p_vaddr) continue;
    uint64_t start = segment->p_vaddr - segment->p_offset;
    if (segment->p_vaddr < lowest) lowest = segment->p_vaddr, *base = start;
  }
  free(segments);
  return lowest != UINT64_MAX;
}

// Reads a symbol table: SHT_SYMTAB has all functions, SHT_DYNSYM the exported ones.
static int read_table(
  int file, uint64_t size_of_file, const ElfW(Shdr) *sections, size_t count, uint32_t kind, lab_symbols *symbols) {
  for (size_t index = 0; index < count; index++) {
    const ElfW(Shdr) *table = &sections[index];
    if (table->sh_type != kind || table->sh_entsize != sizeof(ElfW(Sym)) || table->sh_link >= count) continue;
    const ElfW(Shdr) *names = &sections[table->sh_link];
    symbols->symbols = read_part(file, size_of_file, table->sh_offset, table->sh_size);
    symbols->names = read_part(file, size_of_file, names->sh_offset, names->sh_size);
    symbols->count = table->sh_size / sizeof(ElfW(Sym));
    symbols->size = names->sh_size;
    // If the last name is terminated, every name is.
    if (symbols->symbols && symbols->names && symbols->names[symbols->size - 1] == 0) return 1;
    free(symbols->symbols);
    free(symbols->names);
    symbols->symbols = NULL;
    symbols->names = NULL;
  }
  return 0;
}

lab_symbols *lab_symbols_read(const char *path) {
  int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return NULL;
  struct stat status;
  ElfW(Shdr) *sections = NULL;
  lab_symbols *symbols = calloc(1, sizeof *symbols);
  ElfW(Ehdr) header;
  int is_read = 0;
  if (symbols && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= (off_t)sizeof header &&
      pread(file, &header, sizeof header, 0) == sizeof header && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
      header.e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
      header.e_ident[EI_DATA] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) &&
      header.e_shentsize == sizeof(ElfW(Shdr))) {
    uint64_t size = (uint64_t)status.st_size;
    sections = read_part(file, size, header.e_shoff, header.e_shnum * sizeof(ElfW(Shdr)));
    is_read = sections && read_base(file, size, &header, &symbols->base) &&
      (read_table(file, size, sections, header.e_shnum, SHT_SYMTAB, symbols) ||
       read_table(file, size, sections, header.e_shnum, SHT_DYNSYM, symbols));
  }
  free(sections);
  close(file);
  if (is_read) return symbols;
  lab_symbols_free(symbols);
  return NULL;
}

void lab_symbols_free(lab_symbols *symbols) {
  if (!symbols) return;
  free(symbols->symbols);
  free(symbols->names);
  free(symbols);
}

const char *lab_symbols_find(const lab_symbols *symbols, uint64_t distance) {
  uint64_t address = symbols->base + distance;
  for (size_t index = 0; index < symbols->count; index++) {
    const ElfW(Sym) *symbol = &symbols->symbols[index];
    // ELF32_ST_TYPE and ELF64_ST_TYPE are the same.
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF) continue;
    if (address < symbol->st_value || address - symbol->st_value >= symbol->st_size) continue;
    if (symbol->st_name != 0 && symbol->st_name < symbols->size) return symbols->names + symbol->st_name;
  }
  return NULL;
}

int lab_image_find(uint64_t address, lab_image *image) {
  Dl_info found, program;
  if (!dladdr((void *)(uintptr_t)address, &found) || !found.dli_fname) return 0;
  image->base = (uint64_t)(uintptr_t)found.dli_fbase;
  image->symbol = found.dli_sname;
  // The program's path may be relative to a working directory that has changed since.
  int is_program = dladdr((void *)getauxval(AT_PHDR), &program) && program.dli_fbase == found.dli_fbase;
  image->path = is_program ? "/proc/self/exe" : found.dli_fname;
  return 1;
}

// Swift's standard library exports both without declaring them in a header. The first returns the short names that
// backtraces use.
extern char *_swift_backtrace_demangle(const char *name, size_t length, char *buffer, size_t *size)
    __attribute__((weak));
extern char *swift_demangle(const char *name, size_t length, char *buffer, size_t *size, uint32_t flags)
    __attribute__((weak));

char *lab_demangle(const char *name) {
  size_t length = strlen(name);
  char *text = _swift_backtrace_demangle ? _swift_backtrace_demangle(name, length, NULL, NULL) : NULL;
  return text || !swift_demangle ? text : swift_demangle(name, length, NULL, NULL, 0);
}

int32_t lab_thread_number(void) { return (int32_t)syscall(SYS_gettid); }
