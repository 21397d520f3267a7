"""Words that mean something to C, to C++, to their libraries or to compilers, and so name nothing of ours."""

from __future__ import annotations

import re

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false far float for fortran friend goto huge if inline int
interrupt long mutable namespace near new noexcept not not_eq nullptr operator or or_eq private protected public
register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct
switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
virtual void volatile wchar_t while xor xor_eq
"""
# Macros without arguments, in lower case: of compilers' own dialects, of headers, of systems that C is written for.
_MACROS = """
amd64 arm assert complex errno hppa i386 imaginary interface linux m68k math_errhandling mips noreturn offsetof pcc
ppc sa_handler sa_sigaction small sparc st_atime st_ctime st_mtime stderr stdin stdout sun unix vax vms
"""
# Functions of the C library, those of <math.h> without their endings f and l, unless they are words of every day:
# a parameter called `time` hides a function from a header, where nothing calls it.
_FUNCTIONS = """
abort abs aligned_alloc asctime at_quick_exit atexit atof atoi atol atoll bcmp bcopy bsearch btowc bzero c16rtomb
c32rtomb call_once calloc clearerr exit fclose feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feof
feraiseexcept ferror fesetenv fesetexceptflag fesetround fetestexcept feupdateenv fflush ffs fgetc fgetpos fgets
fgetwc fgetws fopen fprintf fputc fputs fputwc fputws fread free freopen fscanf fseek fsetpos ftell fwide fwprintf
fwrite fwscanf getc getchar getenv getwc getwchar gmtime imaxabs imaxdiv isalnum isalpha isblank iscntrl isdigit
isfinite isgraph isinf islower isnan isnormal isprint ispunct isspace isupper isxdigit labs ldiv llabs lldiv
localeconv localtime longjmp malloc mblen mbrlen mbrtowc mbsinit mbsrtowcs mbstowcs mbtowc memccpy memchr memcmp
memcpy memmove memset memset_explicit mktime perror printf putc putchar puts putwc putwchar qsort quick_exit rand
realloc rewind scanf setbuf setjmp setlocale setvbuf signbit snprintf sprintf srand sscanf strcasecmp strcat strchr
strcmp strcoll strcpy strcspn strdup strerror strftime strlen strncasecmp strncat strncmp strncpy strndup strpbrk
strrchr strspn strstr strtod strtof strtoimax strtok strtol strtold strtoll strtoul strtoull strtoumax strxfrm
swprintf swscanf timespec_get tmpfile tmpnam tolower toupper towctrans towlower towupper ungetc ungetwc va_arg
va_copy va_end va_list va_start vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wcrtomb wcscat wcschr
wcscmp wcscpy wcslen wcsncat wcsncmp wcsncpy wcstok wctob wctomb wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf
wscanf
"""
_MATHEMATICS = """
acos acosh asin asinh atan atan2 atanh cabs carg cbrt ceil cexp cimag clog conj copysign cos cosh cpow creal csqrt
erf erfc exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log
log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo rint round
roundeven scalb scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc
"""
# Headers that C files include with angle brackets, directly or from one to the next; archives that linkers look for.
_FILES = """
aio alloca ammintrin arduino argz arm arm_acle arm_bf16 arm_fp16 arm_math arm_mve arm_mve_types arm_neon
arm_nnfunctions arm_sve assert board byteswap c cmsis_compiler cmsis_gcc complex core_cm0plus core_cm33 core_cm4
core_cm55 core_cm7 cpio cpuid ctype dirent dl dlfcn elf emmintrin endian errno error fcntl features fenv float
freertos freertosconfig ftw gcc getopt glob glue grp hosted iconv immintrin inttypes iso646 langinfo libgen limits
link list locale m main malloc math memory mm_malloc newlib nmmintrin nosys picolibc pmmintrin poll portable
portmacro projdefs pthread pwd queue reent regex resolv riscv rt runtime sched search semaphore setjmp sgtty signal
smmintrin spawn stdalign stdarg stdatomic stdbool stdc stdckdint stddef stdint stdio stdlib stdnoreturn string
strings syscall syslog tar task tbmintrin termios tgmath threads time timers tmmintrin uchar unistd unwind util
utime utmp values wait wchar wctype windows winsock wmmintrin wordexp x86intrin xlocale xmmintrin
"""

WORDS = frozenset((_KEYWORDS + _MACROS + _FUNCTIONS).split()) | {
    f"{name}{ending}" for name in _MATHEMATICS.split() for ending in ("", "f", "l")
}
FILES = frozenset(_FILES.split())

_TYPE = re.compile(
    r"(u?int((_fast|_least)?(8|16|32|64)|max|ptr)|s?size|ptrdiff|wchar|wint|max_align|time|clock|off|float(16|32|64))_t"
)


def is_reserved(word: str) -> bool:
    """Whether a word, in lower case, is a keyword, a macro, a function or a type somewhere a library is compiled."""
    return word in WORDS or _TYPE.fullmatch(word) is not None
