package counter

import (
	"context"

	"zabra/recipes"
)

// VersionedCount is what the node of a Count held at one time.
type VersionedCount struct {
	Count int32
	// Err is ErrCorrupt if the node does not hold a number of 32 bits; then Count is 0.
	Err error
	// At is the number as it lies in the node, with its version.
	At Versioned
}

// Count is a Value that is a whole number of 32 bits, in the layout of Curator's SharedCount. Who wants to add to the number
// rather than to follow it uses a Long with the codec Curator32.
type Count struct{ v *Value }

// NewCount is NewValue for a number.
func NewCount(ctx context.Context, c *recipes.Client, path string, seed int32) (*Count, error) {
	v, err := NewValue(ctx, c, path, countBytes(seed))
	if err != nil {
		return nil, err
	}
	return &Count{v}, nil
}

// Value returns the value below the number: its age, for example.
func (n *Count) Value() *Value { return n.v }

// Close ends the following. The last number can still be read.
func (n *Count) Close() { n.v.Close() }

// Get returns the number as far as is known here, see Value.Get.
func (n *Count) Get() VersionedCount { return asCount(n.v.Get()) }

// Changes returns the number after each change from now on, see Value.Changes.
func (n *Count) Changes(ctx context.Context) <-chan VersionedCount { return changes(ctx, n.v, asCount) }

// Set writes the number whatever it was, see Value.Set.
func (n *Count) Set(ctx context.Context, count int32) (VersionedCount, error) {
	at, err := n.v.Set(ctx, countBytes(count))
	return asCount(at), err
}

// TrySet writes the number if the node still holds previous, see Value.TrySet.
func (n *Count) TrySet(ctx context.Context, previous VersionedCount, count int32) (VersionedCount, bool, error) {
	at, written, err := n.v.TrySet(ctx, previous.At, countBytes(count))
	return asCount(at), written, err
}

func countBytes(n int32) []byte {
	data, _ := Curator32.Encode(int64(n)) // every number of 32 bits fits
	return data
}

func asCount(at Versioned) VersionedCount {
	n, err := Curator32.Decode(at.Data)
	return VersionedCount{Count: int32(n), Err: err, At: at}
}
