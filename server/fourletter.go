package server

import (
	"time"

	"go.uber.org/zap"

	"zabra/server/admin"
	"zabra/wire"
)

// answerWord answers a four-letter word. The reader lingers afterwards: whoever sent a line break behind the word reads
// the whole answer and a clean end, not a reset.
func (c *conn) answerWord(word string) {
	c.word.Store(true)
	c.s.meter.words.Add(1)
	c.s.log.Debug("Processing "+word+" command", zap.Stringer("remote", c.remote))
	b := c.in.unread()
	in := admin.Input{Tail: b[wire.FrameHeadBytes:]}
	answer := admin.Reply(nil, word, c.s.wordEnabled(word), source{c.s}, in)
	if len(answer) > 0 {
		_ = c.tcp.SetWriteDeadline(time.Now().Add(wordWriteTime))
		if err := c.writeAnswer(answer); err != nil {
			c.s.log.Debug("four-letter word was not answered", zap.Stringer("remote", c.remote), zap.Error(err))
		}
	}
	c.s.meter.wordsAnswered.Add(1)
	c.finish()
}

// wordEnabled applies the whitelist, and tells once which key it is.
func (s *Server) wordEnabled(word string) bool {
	cfg := s.live.Load()
	if cfg.FourLetterWord(word) {
		return true
	}
	if word != admin.TelnetBreak && s.meter.wordRefused.CompareAndSwap(false, true) {
		s.log.Info("the four-letter word "+word+" is not enabled; 4lw.commands.whitelist lists those that are. This is told once",
			zap.Strings("enabled", cfg.FourLetterWords))
	}
	return false
}
