//go:build unix

package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// manifest is what the files in deploy/ have of a proxy: a pod of Kubernetes, or a
// service of Compose.
type manifest struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []deployed
			}
		}
	}
	Services map[string]deployed
}

type deployed struct {
	Name          string
	Args, Command []string
	Env           []struct{ Name string }
	Readiness     probe `yaml:"readinessProbe"`
	Liveness      probe `yaml:"livenessProbe"`
	Lifecycle     struct {
		PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
	}
	StopGracePeriod time.Duration `yaml:"stop_grace_period"`
}

type probe struct {
	Get struct {
		Path string
		Port int
	} `yaml:"httpGet"`
}

// stated is a proxy as a file in deploy/ states it.
type stated struct {
	args   []string
	probes map[string]string // path → port
	grace  time.Duration     // from SIGTERM until it is killed
	env    []string
}

// proxiesIn reads the proxies of a file.
func proxiesIn(t *testing.T, path string) (all []stated) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".service") {
		exec := regexp.MustCompile(`(?m)^ExecStart=\S+ (.*)$`).FindStringSubmatch(string(text))
		stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(string(text))
		if exec == nil || stop == nil {
			t.Fatal("no ExecStart or no TimeoutStopSec")
		}
		grace, err := time.ParseDuration(stop[1] + "s")
		if err != nil {
			t.Fatal(err)
		}
		return []stated{{args: strings.Fields(exec[1]), grace: grace}}
	}
	for d := yaml.NewDecoder(strings.NewReader(string(text))); ; {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		for _, c := range m.Spec.Template.Spec.Containers {
			if c.Name != "semel" {
				continue
			}
			s := stated{args: c.Args, probes: map[string]string{}}
			for _, p := range []probe{c.Readiness, c.Liveness} {
				s.probes[p.Get.Path] = fmt.Sprint(p.Get.Port)
			}
			s.grace = time.Duration(m.Spec.Template.Spec.Grace-c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
			for _, e := range c.Env {
				s.env = append(s.env, e.Name)
			}
			all = append(all, s)
		}
		if c, ok := m.Services["semel"]; ok {
			all = append(all, stated{args: c.Command, grace: c.StopGracePeriod})
		}
	}
}

// Each file in deploy/ states a proxy that starts, whose probes answer, and that is not
// killed before its drain is over. The test replaces addresses, store and upstream.
func TestDeploy_EachFile_ProxyStartsAndProbesAnswer(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "..", "deploy")
	b := newBank(t)
	for _, name := range []string{"kubernetes/sidecar.yaml", "kubernetes/standalone.yaml", "compose.yaml", "systemd/semel-proxy.service"} {
		proxies := proxiesIn(t, filepath.Join(root, name))
		if len(proxies) != 1 {
			t.Fatalf("%s has %d proxies", name, len(proxies))
		}
		s := proxies[0]
		option := func(option string) (value string) {
			i := slices.IndexFunc(s.args, func(a string) bool { return strings.HasPrefix(a, "--"+option+"=") })
			if i < 0 {
				return ""
			}
			return strings.TrimPrefix(s.args[i], "--"+option+"=")
		}
		drain, err := time.ParseDuration(option("drain"))
		if err != nil || s.grace < drain+5*time.Second {
			t.Errorf("%s: it is killed %v after SIGTERM, and drains for %v, %v", name, s.grace, drain, err)
		}
		for path, port := range s.probes {
			if !strings.HasSuffix(option("admin-listen"), ":"+port) {
				t.Errorf("%s: the probe of %s asks port %s, and the proxy has %s", name, path, port, option("admin-listen"))
			}
		}
		if s.probes != nil && (s.probes["/readyz"] == "" || s.probes["/healthz"] == "") {
			t.Errorf("%s: the probes are %v", name, s.probes)
		}
		if option("store") == "" && !slices.Contains(s.env, "SEMEL_STORE") {
			t.Errorf("%s has no store", name)
		}
		if strings.HasPrefix(option("scope"), "header:") && option("trusted-gateways") == "" {
			t.Errorf("%s: each client could name its tenant: --scope is %s, without --trusted-gateways", name, option("scope"))
		}
		args := s.args[1:]
		if s.args[0] != "proxy" {
			t.Errorf("%s starts %q", name, s.args[0])
		}
		args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--json" }) // start reads the log as text
		p := start(t, append(args, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--upstream", b.URL,
			"--trusted-gateways", "127.0.0.1", "--store", "sqlite:"+filepath.Join(t.TempDir(), "semel.db"))...) // the last of two equal options counts
		for _, path := range []string{"/readyz", "/healthz"} {
			eventually(t, time.Minute, name+": "+path, func() bool { status, _ := get(t, p.Admin+path); return status == http.StatusOK })
		}
		r, err := post(t.Context(), wire(t), p.Addr, "/pay", "k-"+name, `{"amount":1}`, "X-Account", "a")
		if err != nil || r.status != http.StatusCreated {
			t.Errorf("%s: %d %s, %v", name, r.status, r.body, err)
		}
		p.kill()
	}
}
