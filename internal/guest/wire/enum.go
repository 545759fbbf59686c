package wire

// appendEnum appends the place of v in table; a value that is not in it takes the
// place of the last one, which tables therefore keep for "something else".
func appendEnum[T comparable](b []byte, table []T, v T) []byte {
	for i, t := range table {
		if t == v {
			return append(b, byte(i))
		}
	}
	return append(b, byte(len(table)-1))
}

// takeEnum takes a value by its place in table.
func takeEnum[T comparable](d *Decoder, what string, table []T) T {
	i := int(d.Byte())
	if d.Err() == nil && i >= len(table) {
		d.fail("unknown %s %d", what, i)
	}
	if d.Err() != nil {
		var zero T
		return zero
	}
	return table[i]
}
