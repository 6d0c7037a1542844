/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROFILE_ERRNO_LIST_H
#define PROFILE_ERRNO_LIST_H

/* Linux's errors, as strace prints them: N(number, name, meaning). */

#define ERRNO_LIST(N)                                                      \
	N(1, EPERM, "Operation not permitted")                             \
	N(2, ENOENT, "No such file or directory")                          \
	N(3, ESRCH, "No such process")                                     \
	N(4, EINTR, "Interrupted system call")                             \
	N(5, EIO, "Input/output error")                                    \
	N(6, ENXIO, "No such device or address")                           \
	N(7, E2BIG, "Argument list too long")                              \
	N(8, ENOEXEC, "Exec format error")                                 \
	N(9, EBADF, "Bad file descriptor")                                 \
	N(10, ECHILD, "No child processes")                                \
	N(11, EAGAIN, "Resource temporarily unavailable")                  \
	N(12, ENOMEM, "Cannot allocate memory")                            \
	N(13, EACCES, "Permission denied")                                 \
	N(14, EFAULT, "Bad address")                                       \
	N(15, ENOTBLK, "Block device required")                            \
	N(16, EBUSY, "Device or resource busy")                            \
	N(17, EEXIST, "File exists")                                       \
	N(18, EXDEV, "Invalid cross-device link")                          \
	N(19, ENODEV, "No such device")                                    \
	N(20, ENOTDIR, "Not a directory")                                  \
	N(21, EISDIR, "Is a directory")                                    \
	N(22, EINVAL, "Invalid argument")                                  \
	N(23, ENFILE, "Too many open files in system")                     \
	N(24, EMFILE, "Too many open files")                               \
	N(25, ENOTTY, "Inappropriate ioctl for device")                    \
	N(26, ETXTBSY, "Text file busy")                                   \
	N(27, EFBIG, "File too large")                                     \
	N(28, ENOSPC, "No space left on device")                           \
	N(29, ESPIPE, "Illegal seek")                                      \
	N(30, EROFS, "Read-only file system")                              \
	N(31, EMLINK, "Too many links")                                    \
	N(32, EPIPE, "Broken pipe")                                        \
	N(33, EDOM, "Numerical argument out of domain")                    \
	N(34, ERANGE, "Numerical result out of range")                     \
	N(35, EDEADLK, "Resource deadlock avoided")                        \
	N(36, ENAMETOOLONG, "File name too long")                          \
	N(37, ENOLCK, "No locks available")                                \
	N(38, ENOSYS, "Function not implemented")                          \
	N(39, ENOTEMPTY, "Directory not empty")                            \
	N(40, ELOOP, "Too many levels of symbolic links")                  \
	N(42, ENOMSG, "No message of desired type")                        \
	N(43, EIDRM, "Identifier removed")                                 \
	N(44, ECHRNG, "Channel number out of range")                       \
	N(45, EL2NSYNC, "Level 2 not synchronized")                        \
	N(46, EL3HLT, "Level 3 halted")                                    \
	N(47, EL3RST, "Level 3 reset")                                     \
	N(48, ELNRNG, "Link number out of range")                          \
	N(49, EUNATCH, "Protocol driver not attached")                     \
	N(50, ENOCSI, "No CSI structure available")                        \
	N(51, EL2HLT, "Level 2 halted")                                    \
	N(52, EBADE, "Invalid exchange")                                   \
	N(53, EBADR, "Invalid request descriptor")                         \
	N(54, EXFULL, "Exchange full")                                     \
	N(55, ENOANO, "No anode")                                          \
	N(56, EBADRQC, "Invalid request code")                             \
	N(57, EBADSLT, "Invalid slot")                                     \
	N(59, EBFONT, "Bad font file format")                              \
	N(60, ENOSTR, "Device not a stream")                               \
	N(61, ENODATA, "No data available")                                \
	N(62, ETIME, "Timer expired")                                      \
	N(63, ENOSR, "Out of streams resources")                           \
	N(64, ENONET, "Machine is not on the network")                     \
	N(65, ENOPKG, "Package not installed")                             \
	N(66, EREMOTE, "Object is remote")                                 \
	N(67, ENOLINK, "Link has been severed")                            \
	N(68, EADV, "Advertise error")                                     \
	N(69, ESRMNT, "Srmount error")                                     \
	N(70, ECOMM, "Communication error on send")                        \
	N(71, EPROTO, "Protocol error")                                    \
	N(72, EMULTIHOP, "Multihop attempted")                             \
	N(73, EDOTDOT, "RFS specific error")                               \
	N(74, EBADMSG, "Bad message")                                      \
	N(75, EOVERFLOW, "Value too large for defined data type")          \
	N(76, ENOTUNIQ, "Name not unique on network")                      \
	N(77, EBADFD, "File descriptor in bad state")                      \
	N(78, EREMCHG, "Remote address changed")                           \
	N(79, ELIBACC, "Can not access a needed shared library")           \
	N(80, ELIBBAD, "Accessing a corrupted shared library")             \
	N(81, ELIBSCN, ".lib section in a.out corrupted")                  \
	N(82, ELIBMAX, "Attempting to link in too many shared libraries")  \
	N(83, ELIBEXEC, "Cannot exec a shared library directly")           \
	N(84, EILSEQ, "Invalid or incomplete multibyte or wide character") \
	N(85, ERESTART, "Interrupted system call should be restarted")     \
	N(86, ESTRPIPE, "Streams pipe error")                              \
	N(87, EUSERS, "Too many users")                                    \
	N(88, ENOTSOCK, "Socket operation on non-socket")                  \
	N(89, EDESTADDRREQ, "Destination address required")                \
	N(90, EMSGSIZE, "Message too long")                                \
	N(91, EPROTOTYPE, "Protocol wrong type for socket")                \
	N(92, ENOPROTOOPT, "Protocol not available")                       \
	N(93, EPROTONOSUPPORT, "Protocol not supported")                   \
	N(94, ESOCKTNOSUPPORT, "Socket type not supported")                \
	N(95, EOPNOTSUPP, "Operation not supported")                       \
	N(96, EPFNOSUPPORT, "Protocol family not supported")               \
	N(97, EAFNOSUPPORT, "Address family not supported by protocol")    \
	N(98, EADDRINUSE, "Address already in use")                        \
	N(99, EADDRNOTAVAIL, "Cannot assign requested address")            \
	N(100, ENETDOWN, "Network is down")                                \
	N(101, ENETUNREACH, "Network is unreachable")                      \
	N(102, ENETRESET, "Network dropped connection on reset")           \
	N(103, ECONNABORTED, "Software caused connection abort")           \
	N(104, ECONNRESET, "Connection reset by peer")                     \
	N(105, ENOBUFS, "No buffer space available")                       \
	N(106, EISCONN, "Transport endpoint is already connected")         \
	N(107, ENOTCONN, "Transport endpoint is not connected")            \
	N(108, ESHUTDOWN, "Cannot send after transport endpoint shutdown") \
	N(109, ETOOMANYREFS, "Too many references: cannot splice")         \
	N(110, ETIMEDOUT, "Connection timed out")                          \
	N(111, ECONNREFUSED, "Connection refused")                         \
	N(112, EHOSTDOWN, "Host is down")                                  \
	N(113, EHOSTUNREACH, "No route to host")                           \
	N(114, EALREADY, "Operation already in progress")                  \
	N(115, EINPROGRESS, "Operation now in progress")                   \
	N(116, ESTALE, "Stale file handle")                                \
	N(117, EUCLEAN, "Structure needs cleaning")                        \
	N(118, ENOTNAM, "Not a XENIX named type file")                     \
	N(119, ENAVAIL, "No XENIX semaphores available")                   \
	N(120, EISNAM, "Is a named type file")                             \
	N(121, EREMOTEIO, "Remote I/O error")                              \
	N(122, EDQUOT, "Disk quota exceeded")                              \
	N(123, ENOMEDIUM, "No medium found")                               \
	N(124, EMEDIUMTYPE, "Wrong medium type")                           \
	N(125, ECANCELED, "Operation canceled")                            \
	N(126, ENOKEY, "Required key not available")                       \
	N(127, EKEYEXPIRED, "Key has expired")                             \
	N(128, EKEYREVOKED, "Key has been revoked")                        \
	N(129, EKEYREJECTED, "Key was rejected by service")                \
	N(130, EOWNERDEAD, "Owner died")                                   \
	N(131, ENOTRECOVERABLE, "State not recoverable")                   \
	N(132, ERFKILL, "Operation not possible due to RF-kill")           \
	N(133, EHWPOISON, "Memory page has hardware error")

#endif
