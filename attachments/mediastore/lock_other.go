//go:build !unix

package mediastore

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

func lock(context.Context, *os.File, bool) error { return errors.ErrUnsupported }

func tryLock(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }

func private(fs.FileInfo) error { return errors.ErrUnsupported }

const nonblock = 0
