package wire

import (
	"context"
	"io/fs"
	"os"
	"path"

	"github.com/workberth/workberth/fsbridge"
)

// An error travels with the code of every sentinel it matches. Codes are places
// in this table: append only.
var errorCodes = []error{
	0:  fs.ErrNotExist,
	1:  fs.ErrExist,
	2:  fs.ErrPermission,
	3:  fsbridge.ErrOutsideRoot,
	4:  fsbridge.ErrReadOnly,
	5:  fsbridge.ErrNotRegular,
	6:  fsbridge.ErrTooLarge,
	7:  fsbridge.ErrConflict,
	8:  fsbridge.ErrUnsupported,
	9:  fsbridge.ErrNotCurrent,
	10: fsbridge.ErrOutcomeUnknown,
	11: fsbridge.ErrUnavailable,
	12: fsbridge.ErrInvalidPath,
	13: fsbridge.ErrCrossDevice,
	14: fsbridge.ErrInvalid,
	15: path.ErrBadPattern,
	16: os.ErrProcessDone,
	17: fs.ErrClosed,
	18: context.Canceled,
	19: context.DeadlineExceeded,
}
