package sshhost

import "github.com/prometheus/client_golang/prometheus"

// Metrics count what the server does. Names begin with berth_host_. No label has a value
// that a client chooses.
type Metrics struct {
	connections *prometheus.GaugeVec
	refused     *prometheus.CounterVec
	logins      *prometheus.CounterVec
	sessions    *prometheus.CounterVec
	running     prometheus.Gauge
	bytes       *prometheus.CounterVec
	sandboxes   prometheus.Gauge
	opens       *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them; reg may be nil.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "berth", Subsystem: "host", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: "berth", Subsystem: "host", Name: name, Help: help}
	}
	m := &Metrics{
		connections: prometheus.NewGaugeVec(gauge("connections", "Connections open now, by state (login, admitted)."), []string{"state"}),
		refused:     counter("refused_total", "Connections and channels refused, by limit.", "limit"),
		logins:      counter("auth_total", "Login attempts by outcome (ok, refused, failed).", "outcome"),
		sessions:    counter("sessions_total", "Sessions ended, by kind and outcome.", "kind", "outcome"),
		running:     prometheus.NewGauge(gauge("sessions", "Sessions open now.")),
		bytes:       counter("bytes_total", "Bytes of sessions from (in) and to (out) clients.", "direction"),
		sandboxes:   prometheus.NewGauge(gauge("sandboxes", "Sandboxes held now.")),
		opens:       counter("sandbox_opens_total", "Sandboxes opened, by outcome.", "outcome"),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.connections, m.refused, m.logins, m.sessions, m.running, m.bytes, m.sandboxes, m.opens} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) auth(outcome string)        { m.logins.WithLabelValues(outcome).Inc() }
func (m *Metrics) refuse(limit string)        { m.refused.WithLabelValues(limit).Inc() }
func (m *Metrics) state(s string, by float64) { m.connections.WithLabelValues(s).Add(by) }

func (m *Metrics) moved(in, out int64) {
	m.bytes.WithLabelValues("in").Add(float64(in))
	m.bytes.WithLabelValues("out").Add(float64(out))
}
