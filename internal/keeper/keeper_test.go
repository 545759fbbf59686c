package keeper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// A sandbox lives as long as somebody holds it, once, with a record; then what it held
// is released and the record says stopped.
func TestLife(t *testing.T) {
	r := newRig(t)
	res := r.resolved("a", "")
	one, two := r.ensure(r.Keeper, res), r.ensure(r.Keeper, res)
	if len(r.births) != 1 || one.Info().ID != two.Info().ID {
		t.Fatalf("%d births", len(r.births))
	}
	rec, err := r.registry.Get(res.ID)
	if err != nil || rec.Info.State != sandbox.StateRunning || rec.InstanceTag != r.births[0].Tag || len(rec.Runtimes) != 1 ||
		rec.Info.Runtime["tag"] != rec.InstanceTag || !rec.SetupDone || rec.Info.Owner.IsZero() {
		t.Errorf("record %+v, %v", rec, err)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if r.released != 0 {
		t.Error("released while somebody holds it")
	}
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	rec, err = r.registry.Get(res.ID)
	if err != nil || rec.Info.State != sandbox.StateStopped || rec.InstanceTag != "" || len(rec.Runtimes) != 0 || len(rec.PendingSweep) != 0 || !rec.Info.Owner.IsZero() {
		t.Errorf("record %+v, %v", rec, err)
	}
	if r.released != 1 || len(r.slots) != 0 {
		t.Errorf("released %d times, %d slots are left", r.released, len(r.slots))
	}
	again := r.ensure(r.Keeper, res)
	if again.Info().Created != one.Info().Created || r.births[1].Tag == r.births[0].Tag {
		t.Errorf("second life: %+v after %+v", again.Info(), one.Info())
	}
}

// A life that did not end cleanly is swept by the next one.
func TestSweep(t *testing.T) {
	r := newRig(t)
	res := r.resolved("a", "")
	r.dirty = true
	sb := r.ensure(r.Keeper, res)
	if err := r.places[0].Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-sb.Done()
	rec, err := r.registry.Get(res.ID)
	if err != nil || !slices.Equal(rec.PendingSweep, []string{r.births[0].Tag}) || !strings.Contains(rec.Info.Detail, "the fake ended") {
		t.Errorf("record %+v, %v", rec, err)
	}
	r.dirty = false
	r.ensure(r.Keeper, res)
	rec, err = r.registry.Get(res.ID)
	if err != nil || len(rec.PendingSweep) != 0 || !slices.Equal(r.swept, []string{r.births[0].Tag}) {
		t.Errorf("record %+v, %v; swept %v", rec, err, r.swept)
	}
}

// The setup command runs once; one that fails takes the sandbox with it.
func TestSetup(t *testing.T) {
	r := newRig(t)
	res := r.resolved("a", "make")
	for range 2 {
		if err := r.ensure(r.Keeper, res).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if r.setups != 1 {
		t.Errorf("it ran %d times", r.setups)
	}
	broken := r.resolved("a", "fail")
	_, err := r.Ensure(t.Context(), broken)
	var p *sandbox.Problem
	if !errors.As(err, &p) || p.Field != "setupCommand" || !strings.Contains(p.Rule, "it is broken") {
		t.Errorf("%v", err)
	}
	if _, err := r.registry.Get(broken.ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("the sandbox is left: %v", err)
	}
	if infos, err := r.List(t.Context()); err != nil || len(infos) != 1 || infos[0].ID != res.ID {
		t.Errorf("listed %v, %v", infos, err)
	}
}

// A start that fails leaves no new sandbox, and an old one as it was.
func TestStartFails(t *testing.T) {
	r := newRig(t)
	res := r.resolved("a", "")
	r.fail = errStart
	if _, err := r.Ensure(t.Context(), res); !errors.Is(err, errStart) {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(r.state, "sandboxes")); err != nil || len(entries) > 1 {
		t.Errorf("left in the state directory: %v, %v", entries, err)
	}
	r.fail = nil
	if err := r.ensure(r.Keeper, res).Close(); err != nil {
		t.Fatal(err)
	}
	r.fail = errStart
	if _, err := r.Ensure(t.Context(), res); !errors.Is(err, errStart) {
		t.Errorf("%v", err)
	}
	if rec, err := r.registry.Get(res.ID); err != nil || rec.Info.State != sandbox.StateStopped {
		t.Errorf("record %+v, %v", rec, err)
	}
	r.fail, r.clearErr = nil, errors.New("something is left")
	if _, err := r.Ensure(t.Context(), res); !errors.Is(err, sandbox.ErrUnavailable) || !errors.Is(err, r.clearErr) {
		t.Errorf("%v", err)
	}
	r.clearErr = nil
	r.ensure(r.Keeper, res)
}

// Many at once get one sandbox.
func TestTurns(t *testing.T) {
	r := newRig(t)
	res := r.resolved("a", "")
	keep := r.ensure(r.Keeper, res)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			sb, err := r.Ensure(t.Context(), res)
			if err != nil {
				t.Error(err)
				return
			}
			if sb.Info().ID != keep.Info().ID {
				t.Error("another sandbox")
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(r.births) != 1 {
		t.Errorf("%d births", len(r.births))
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, give, err := r.take(ctx, res.ID)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := r.Ensure(ctx, res); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a turn: %v", err)
	}
	give()
}

// One keeper holds a sandbox, another one sees it, may not have it, and may end it.
func TestAnotherKeeper(t *testing.T) {
	r := newRig(t)
	res := r.resolved("a", "")
	sb := r.ensure(r.Keeper, res)
	other := r.open()
	var held *sandbox.InUseError
	if _, err := other.Ensure(t.Context(), res); !errors.As(err, &held) || held.Owner.PID != os.Getpid() {
		t.Errorf("%v", err)
	}
	if infos, err := other.List(t.Context()); err != nil || len(infos) != 1 || infos[0].State != sandbox.StateRunning {
		t.Errorf("listed %v, %v", infos, err)
	}
	if err := other.Stop(t.Context(), res.ID); err != nil || !slices.Equal(r.quelled, []string{r.births[0].Tag}) {
		t.Errorf("stopped from elsewhere: %v, quelled %v", err, r.quelled)
	}
	if err := r.Stop(t.Context(), res.ID); err != nil {
		t.Error(err)
	}
	select {
	case <-sb.Done():
	default:
		t.Error("stopped, and not done")
	}
	if !errors.Is(sb.Err(), sandbox.ErrGone) || !errors.Is(sb.Err(), errStopped) {
		t.Errorf("reason %v", sb.Err())
	}
	if err := r.ensure(other, res).Close(); err != nil {
		t.Error(err)
	}
	if err := other.Remove(t.Context(), res.ID); err != nil {
		t.Error(err)
	}
	if _, err := r.registry.Get(res.ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("%v", err)
	}
	for _, id := range []sandbox.ID{res.ID, "fake-0000000000000000", "docker-0000000000000000", "x"} {
		if err := errors.Join(r.Stop(t.Context(), id), r.Remove(t.Context(), id)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// A record of a dead owner is taken over: what it left is cleared away first.
func TestDeadOwner(t *testing.T) {
	r := newRig(t)
	res := r.resolved("a", "")
	claim, err := r.registry.Claim(t.Context(), res.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := claim.Save(sandbox.Record{
		InstanceTag: "feedfacefeedface",
		Info:        sandbox.Info{Backend: backend, State: sandbox.StateRunning},
	}); err != nil {
		t.Fatal(err)
	}
	if err := claim.Release(); err != nil {
		t.Fatal(err)
	}
	r.ensure(r.Keeper, res)
	if !slices.Contains(r.cleared, res.ID) || !slices.Contains(r.swept, "feedfacefeedface") {
		t.Errorf("cleared %v, swept %v", r.cleared, r.swept)
	}
}

// A claim that is held for a moment is waited for.
func TestMomentaryClaim(t *testing.T) {
	r := newRig(t)
	res := r.resolved("a", "")
	claim, err := r.registry.Claim(t.Context(), res.ID)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		sb, err := r.Ensure(t.Context(), res)
		if err == nil {
			err = sb.Close()
		}
		done <- err
	}()
	if err := claim.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
