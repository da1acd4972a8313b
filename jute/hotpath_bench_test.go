package jute

import "testing"

// benchFields are the fields of a request and of a reply: a header, a path, data, and the numbers of a stat.
func benchFields(e *Encoder, path, data []byte) {
	e.Int32(7)
	e.Int32(5)
	e.UString(path)
	e.Buffer(data)
	for i := range 6 {
		e.Int64(int64(i))
	}
	for i := range 5 {
		e.Int32(int32(i))
	}
}

func BenchmarkFields(b *testing.B) {
	path, data := []byte("/services/orders/instance-0000000042"), make([]byte, 100)
	var in Encoder
	benchFields(&in, path, data)
	b.Run("encode", func(b *testing.B) {
		buf := make([]byte, 0, 512)
		b.ReportAllocs()
		for b.Loop() {
			var e Encoder
			e.Reset(buf)
			benchFields(&e, path, data)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d := NewDecoder(in.Bytes(), 0)
			d.Int32()
			d.Int32()
			d.UString()
			d.Buffer()
			for range 6 {
				d.Int64()
			}
			for range 5 {
				d.Int32()
			}
			if d.Err() != nil || d.Remaining() != 0 {
				b.Fatal(d.Err(), d.Remaining())
			}
		}
	})
}
