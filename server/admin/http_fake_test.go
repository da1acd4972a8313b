package admin

// fakeHTTP are the fixed values for what only the admin server asks of a fake.
type fakeHTTP struct {
	detail      Detail
	initial     string
	snapshot    *SnapshotFile
	leader      *Leader
	synced      int
	observers   []Observer
	orst        int
	properties  []Property
	members     []Member
	zab         *ZabState
	defect      bool
	defectValue any
}

func (f *fake) Detail() Detail { return f.http.detail }
func (f *fake) InitialConfiguration() string {
	if f.http.defect {
		panic(f.http.defectValue)
	}
	return f.http.initial
}

func (f *fake) LastSnapshot() (s SnapshotFile, ok bool) {
	if f.http.snapshot != nil {
		return *f.http.snapshot, true
	}
	return s, false
}

func (f *fake) Leader() (l Leader, ok bool) {
	if f.http.leader != nil {
		return *f.http.leader, true
	}
	return l, false
}

func (f *fake) Observers() (int, []Observer) { return f.http.synced, f.http.observers }
func (f *fake) ResetObservers()              { f.http.orst++ }
func (f *fake) SystemProperties() []Property { return f.http.properties }
func (f *fake) VotingView() []Member         { return f.http.members }
func (f *fake) ZabState() (z ZabState, ok bool) {
	if f.http.zab != nil {
		return *f.http.zab, true
	}
	return z, false
}
