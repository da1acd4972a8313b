package bench

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	epollEventsMax = 512
	// wakeSlot is that of the event by which another thread wakes this one, timerSlot that of the timer.
	wakeSlot, timerSlot = -1, -2
)

// epoll is the poller of Linux. Sockets are registered once, for edges: what is told once is not told again.
type epoll struct {
	fd, timer, waker int
	slots            []*session
	free             []int32
	raw              [epollEventsMax]unix.EpollEvent
	events           []event
}

func newPoller(portable bool) (poller, error) {
	if portable {
		return newPortable(), nil
	}
	p := &epoll{fd: -1, timer: -1, waker: -1}
	if err := p.open(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *epoll) open() (err error) {
	if p.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create", err)
	}
	if p.waker, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	if p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	if err := p.register(p.waker, wakeSlot, 0); err != nil {
		return err
	}
	return p.register(p.timer, timerSlot, 0)
}

func (p *epoll) register(fd int, slot int32, gen uint32) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: slot, Pad: int32(gen)}
	if slot >= 0 {
		e.Events |= unix.EPOLLOUT
	}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e))
}

func (p *epoll) dial(s *session, addr netip.AddrPort) error {
	family, to := sockaddr(addr)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // TCP sockets have it
	s.fd, s.slot = fd, p.slot(s)
	if err := p.register(fd, s.slot, s.gen); err != nil {
		p.cut(s)
		return err
	}
	if err := unix.Connect(fd, to); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		p.cut(s)
		return os.NewSyscallError("connect", err)
	}
	return nil
}

func sockaddr(addr netip.AddrPort) (family int, to unix.Sockaddr) {
	ip := addr.Addr().Unmap()
	if ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: ip.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(addr.Port()), Addr: ip.As16()}
}

func (p *epoll) slot(s *session) int32 {
	if n := len(p.free); n > 0 {
		slot := p.free[n-1]
		p.free = p.free[:n-1]
		p.slots[slot] = s
		return slot
	}
	p.slots = append(p.slots, s)
	return int32(len(p.slots) - 1)
}

func (p *epoll) dialled(s *session) error {
	code, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = syscall.Errno(code)
	}
	return os.NewSyscallError("connect", err)
}

// read and write do not tell the scheduler, as system calls otherwise do: they never wait.
func (p *epoll) read(s *session, b []byte) (int, error) {
	data := unsafe.Pointer(unsafe.SliceData(b))
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(s.fd), uintptr(data), uintptr(len(b)))
	switch {
	case errno == 0 && n == 0:
		return 0, io.EOF
	case errno != 0:
		return 0, again("read", errno)
	}
	return int(n), nil
}

func (p *epoll) write(s *session, b []byte) (int, error) {
	data := unsafe.Pointer(unsafe.SliceData(b))
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(data), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, again("write", errno)
	}
	return int(n), nil
}

func again(call string, errno syscall.Errno) error {
	if errno == syscall.EAGAIN || errno == syscall.EINTR {
		return errAgain
	}
	return os.NewSyscallError(call, errno)
}

func (p *epoll) cut(s *session) {
	_ = unix.SetsockoptLinger(s.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // a close without it is as good
	_ = unix.Close(s.fd)
	p.slots[s.slot] = nil
	p.free = append(p.free, s.slot)
	s.fd = -1
}

func (p *epoll) wait(timeout time.Duration) ([]event, error) {
	ms := int(timeout / time.Millisecond)
	if timeout > 0 && timeout < coarse {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(timeout))}
		if err := unix.TimerfdSettime(p.timer, 0, &spec, nil); err != nil {
			return nil, os.NewSyscallError("timerfd_settime", err)
		}
		ms = int(coarse / time.Millisecond)
	}
	n, err := unix.EpollWait(p.fd, p.raw[:], max(ms, 0))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return nil, os.NewSyscallError("epoll_wait", err)
	}
	p.events = p.events[:0]
	for i := range max(n, 0) {
		e := &p.raw[i]
		if e.Fd < 0 || p.slots[e.Fd] == nil {
			continue // the timer, a wake, or a socket that is gone
		}
		failed := e.Events&(unix.EPOLLERR|unix.EPOLLHUP) != 0
		p.events = append(p.events, event{
			s: p.slots[e.Fd], gen: uint32(e.Pad),
			readable: failed || e.Events&unix.EPOLLIN != 0,
			writable: failed || e.Events&unix.EPOLLOUT != 0,
			ended:    failed || e.Events&unix.EPOLLRDHUP != 0,
		})
	}
	return p.events, nil
}

func (p *epoll) wake() {
	one := [8]byte{1}                  // any number will do
	_, _ = unix.Write(p.waker, one[:]) // it can only fail when it is so full that the wait ends anyway
}

func (p *epoll) close() {
	for _, fd := range []int{p.fd, p.timer, p.waker} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
