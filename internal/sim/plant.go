package sim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"zabra/internal/storage/vfs"
	"zabra/zab"
)

// HostPlant is a set of bugs of the machinery around the core, planted for showing that they are found: mutations, in the
// literature.
type HostPlant uint32

const (
	// PlantConfirmEarly confirms appends to the core before they are carried out.
	PlantConfirmEarly HostPlant = 1 << iota
	// PlantLostSync makes syncs of logs do nothing.
	PlantLostSync
	// PlantLostDirSync makes syncs of directories do nothing.
	PlantLostDirSync
	// PlantNoRestore goes on with the old state after a snapshot was installed.
	PlantNoRestore
	// PlantPartSnapshot takes a snapshot whose transfer broke off for complete.
	PlantPartSnapshot
)

var hostPlantNames = map[string]HostPlant{
	"confirm-early": PlantConfirmEarly, "lost-sync": PlantLostSync, "lost-dirsync": PlantLostDirSync, "no-restore": PlantNoRestore,
	"part-snapshot": PlantPartSnapshot,
}

// PlantNames lists the bugs that can be planted.
func PlantNames() []string {
	all := maps.Clone(hostPlantNames)
	for name := range zab.Plants() { // order: the names are sorted below
		all[name] = 0
	}
	return slices.Sorted(maps.Keys(all))
}

// ParsePlant finds a bug by its name.
func ParsePlant(name string) (zab.Plant, HostPlant, error) {
	if p, ok := zab.Plants()[name]; ok {
		return p, 0, nil
	}
	if p, ok := hostPlantNames[name]; ok {
		return 0, p, nil
	}
	return 0, 0, fmt.Errorf("no bug is called %q; there are: %s", name, strings.Join(PlantNames(), ", "))
}

// parsePlants is ParsePlant for a name that may be empty.
func parsePlants(name string) (zab.Plant, HostPlant, error) {
	if name == "" {
		return 0, 0, nil
	}
	return ParsePlant(name)
}

// lyingFS says that it has synced, and has not.
type lyingFS struct {
	vfs.FS
	plant HostPlant
}

// SyncDir implements vfs.FS.
func (l *lyingFS) SyncDir(dir string) error {
	if l.plant&PlantLostDirSync != 0 {
		return nil
	}
	return l.FS.SyncDir(dir)
}

// Create implements vfs.FS.
func (l *lyingFS) Create(name string) (vfs.File, error) { return l.wrap(name, l.FS.Create) }

// OpenWrite implements vfs.FS.
func (l *lyingFS) OpenWrite(name string) (vfs.File, error) { return l.wrap(name, l.FS.OpenWrite) }

func (l *lyingFS) wrap(name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	f, err := open(name)
	if base := path.Base(name); err == nil && l.plant&PlantLostSync != 0 && (strings.HasPrefix(base, "log.") || strings.HasPrefix(base, "zabra.log")) {
		return lyingFile{f}, nil
	}
	return f, err
}

type lyingFile struct{ vfs.File }

// Sync implements vfs.File.
func (lyingFile) Sync() error { return nil }

// SyncData implements vfs.File.
func (lyingFile) SyncData() error { return nil }
