/* Part of libraries in which weights of some layers are the beginnings of rows of larger ones. */
#ifndef EW_VIEWS_H
#define EW_VIEWS_H

#define EW_HAS_VIEWS 1

#endif /* EW_VIEWS_H */
