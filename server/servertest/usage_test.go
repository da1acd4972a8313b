package servertest_test

import "testing"

// What the example shows has to work.
func TestExample(t *testing.T) {
	t.Run("worker is gone", testWorkerIsGone)
	t.Run("reply is lost", testReplyIsLost)
	t.Run("time passes", testTimePasses)
	t.Run("ensemble goes on", testEnsembleGoesOn)
}
