// Command image writes the container image of a release as an OCI layout.
// scripts/release calls it. The same input gives the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the number of the unprivileged user and group of the container, as in
// the "nonroot" images of distroless.
const user = 65532

type release struct {
	version, revision string
	created           time.Time
	licenses          []byte
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var rel release
	flags := flag.NewFlagSet("image", flag.ExitOnError)
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: image [FLAGS] PLATFORM=SEMEL,SEMEL-DELIVER…   for example linux/amd64=./semel,./semel-deliver")
		flags.PrintDefaults()
	}
	out := flags.String("out", "image", "the directory to write; it must not exist")
	licenses := flags.String("licenses", "", "a file with the licences of Semel and of its dependencies")
	created := flags.String("created", "1970-01-01T00:00:00Z", "the time of all files, in RFC 3339")
	flags.StringVar(&rel.version, "version", "v0.0.0", "the version, and the image's tag")
	flags.StringVar(&rel.revision, "revision", "", "the commit")
	_ = flags.Parse(args)

	var err error
	if rel.created, err = time.Parse(time.RFC3339, *created); err != nil {
		return fmt.Errorf("-created: %w", err)
	}
	if rel.licenses, err = os.ReadFile(*licenses); err != nil {
		return fmt.Errorf("-licenses: %w", err)
	}
	if _, err := os.Stat(*out); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("-out %s exists; remove it or choose another directory", *out)
	}
	if flags.NArg() == 0 {
		return errors.New("no programs are given; add for example linux/amd64=./semel,./semel-deliver")
	}
	base, err := rel.baseLayer()
	if err != nil {
		return err
	}
	index := v1.ImageIndex(empty.Index)
	for _, arg := range flags.Args() {
		platform, files, _ := strings.Cut(arg, "=")
		semel, deliver, ok := strings.Cut(files, ",")
		if !ok {
			return fmt.Errorf("%s: has one program; write linux/amd64=./semel,./semel-deliver", arg)
		}
		p, err := v1.ParsePlatform(platform)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		img, err := rel.image(p, base, semel, deliver)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: p}})
	}
	dir, err := layout.Write(*out, empty.Index)
	if err != nil {
		return err
	}
	return dir.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": rel.version}))
}

// image is the image of one platform: the base and the programs, which semel looks for
// in its own directory. Each is a layer.
func (r *release) image(p *v1.Platform, base v1.Layer, semel, deliver string) (v1.Image, error) {
	made := v1.Time{Time: r.created}
	layers := []mutate.Addendum{{Layer: base, History: v1.History{Created: made, CreatedBy: "directories, CA certificates, licences"}}}
	for _, program := range []struct{ name, file string }{{"semel", semel}, {"semel-deliver", deliver}} {
		content, err := os.ReadFile(program.file)
		if err != nil {
			return nil, err
		}
		layer, err := r.layer([]entry{{tar.Header{Name: program.name, Mode: 0o755}, content}})
		if err != nil {
			return nil, err
		}
		layers = append(layers, mutate.Addendum{Layer: layer, History: v1.History{Created: made, CreatedBy: program.name + " " + r.version}})
	}
	img, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layers...)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created, config.OS, config.Architecture = made, p.OS, p.Architecture
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		WorkingDir:   "/data", // where semel.db is, the default store
		Entrypoint:   []string{"/semel"},
		Cmd:          []string{"--help"},
		Env:          []string{"HOME=/data", "PATH=/", "SEMEL_LISTEN=0.0.0.0:8080"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Volumes:      map[string]struct{}{"/data": {}, "/tmp": {}}, // writable although the root is read-only
		Labels: map[string]string{
			"org.opencontainers.image.title":    "semel",
			"org.opencontainers.image.source":   "https://github.com/semel-go/semel",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.revision,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(img, config)
}

// baseLayer is the layer that every platform shares.
func (r *release) baseLayer() (v1.Layer, error) {
	directory := func(name string, mode int64, owner int) entry {
		return entry{header: tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: mode, Uid: owner, Gid: owner}}
	}
	file := func(name string, content []byte) entry { return entry{tar.Header{Name: name, Mode: 0o644}, content} }
	return r.layer([]entry{
		directory("data/", 0o750, user),
		directory("etc/", 0o755, 0),
		file("etc/passwd", fmt.Appendf(nil, "root:x:0:0::/:/none\nsemel:x:%d:%d::/data:/none\n", user, user)),
		file("etc/group", fmt.Appendf(nil, "root:x:0:\nsemel:x:%d:\n", user)),
		directory("etc/ssl/", 0o755, 0),
		directory("etc/ssl/certs/", 0o755, 0),
		file("etc/ssl/certs/ca-certificates.crt", roots()),
		file("LICENSES", r.licenses),
		directory("tmp/", 0o1777, 0),
	})
}

// roots are Mozilla's root certificates. A root with a constraint is left out,
// because a file of certificates cannot express the constraint.
func roots() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}

type entry struct {
	header  tar.Header
	content []byte
}

func (r *release) layer(entries []entry) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.header.Size, e.header.ModTime, e.header.Format = int64(len(e.content)), r.created, tar.FormatPAX
		if err := w.WriteHeader(&e.header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}
