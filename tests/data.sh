#!/usr/bin/env bash
# division data from outside: conversions that are killed, downloads that break off, sheets, photographs.
# DV_PROGRAM is the program, DV_TEMP an empty folder, DV_SHARED (or ../shared) may have photographs.
source "$DV_SOURCE_DIR/tests/calls.bash"
subcommand=(data)
servers=()
trap '((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null' EXIT

# ---- wrong calls -----------------------------------------------------------------------------

run
fails 2 "data: COMMAND is missing: see 'division data --help'"
run --help
prints '*fetch*lmdb*show*speed*'
run lmdb only
fails 2 'data lmdb: give the folder of images and one for the files: SRC DEST'
run lmdb --verify one two
fails 2 'data lmdb: --verify takes the folder of the files alone'
run lmdb missing made
fails_like 1 '*missing: No such file or directory: images are to be in CLASS/, or in train/CLASS/ and val/CLASS/'
mkdir no-classes && touch no-classes/a.jpg
run show folder:no-classes
fails 1 'no-classes has no folders: put the images of each class into one of their own, no-classes/CLASS/'
run fetch mnist here
fails 2 "data fetch: 'mnist' is none that can be fetched: give cifar10 or cifar100"
run show nothing:here
fails_like 2 'data: "nothing:here" is no data set*'

# ---- a sheet ---------------------------------------------------------------------------------

run show synthetic:train=40,test=20 --png sheet.png --images 7 --columns 3 --augment zero
prints '40 images to train, 20 to test, 10 classes, shown as 32 x 32
 label     train      test  class
     0         4         2  striped disc*'
[[ $(head -c 4 sheet.png | tail -c 3) == PNG ]] || complain "expected a picture"
run show synthetic:train=4 --png sheet.png --augment cutout
fails 2 'augmentation: "cutout" is none: there is usual, none, zero, reflect, resized'
run speed synthetic:train=64,side=8 --batch 8 --seconds 0.2 --json
prints '{"data": "synthetic:train=64,side=8", "split": "train", "batch": 8, "workers": 2, "loader_images_per_second": *, "decoder_images_per_second": null, "ratio": null}'

# ---- photographs -----------------------------------------------------------------------------

photographs=${DV_SHARED:-$DV_SOURCE_DIR/../shared}/data/imagenet-sample
if [[ -d $photographs ]]; then
    run lmdb "$photographs" photographs
    prints 'train.lmdb  32 images  * MB
val.lmdb  7 images  * kB
written and verified'
    run show lmdb:photographs --png photographs.png --images 4
    prints '32 images to train, 7 to test, 4 classes, shown as 224 x 224*n03791235'
else
    echo "left out: there are no photographs in $photographs"
fi

# ---- conversions that are killed -------------------------------------------------------------

# draw FILES SPLIT: a sheet of all images, in the order of the records.
draw() {
    run show "lmdb:$1" --side 16 --augment none --split "$2" --images 560 --columns 40 --png "$1-$2.png"
}

# is_whole: what was killed is verified, and record by record what one go made.
is_whole() {
    run lmdb --verify killed
    prints 'train.lmdb  560 images*val.lmdb  8 images*all records are as they were written'
    for split in train test; do
        draw killed $split
        cmp -s "whole-$split.png" "killed-$split.png" || complain "the records differ from those of one go"
    done
}

# Images of the program's own making, as PNG files: more than a few transactions of them.
mkdir -p images/{train,val}/{cat,dog}
for ((i = 0; i < 4; i++)); do
    "$DV_PROGRAM" data show synthetic:side=128 --seed "$i" --images 1 --png images/one.png >/dev/null
    for ((k = 0; k < 70; k++)); do
        cp images/one.png "images/train/cat/$i-$k.png"
        cp images/one.png "images/train/dog/$((i + 5))-$k.png"
    done
    cp images/one.png "images/val/cat/$i.png"
    cp images/one.png "images/val/dog/$i.png"
done
run lmdb images whole --resize 64 --workers 2
prints 'train.lmdb  560 images*val.lmdb  8 images*568 images were resized
written and verified'

# Ends a conversion by SIGKILL, SIGTERM and SIGHUP, each DV_KILLS times (7, or 2 where that takes long), and lets it go on
# each time. One that comes to its end between two of them is to be like one in one go, and the next begins from nothing.
signals=(KILL TERM HUP)
wanted=$((3 * ${DV_KILLS:-7}))
sanitized && wanted=6
begin=$(milliseconds)
run lmdb images timed --resize 64 --workers 2 --quiet
longest=$((($(milliseconds) - begin) / 2)) # so that most kills meet it
for split in train test; do
    draw whole $split
done
RANDOM=7
kills=0 ends=0
while ((kills < wanted && ends < wanted && failures == 0)); do
    call="division data lmdb, then SIG${signals[kills % 3]}"
    env --default-signal=HUP "$DV_PROGRAM" data lmdb images killed --resize 64 --workers 2 --quiet 2>messages &
    if kill_within $longest $! "${signals[kills % 3]}"; then
        kills=$((kills + 1)) messages=$(<messages)
        [[ -z $messages || $messages == 'division: interrupted: call it again: it goes on from there' ]] || complain "expected no other message"
    else
        is_whole
        ends=$((ends + 1))
        rm -r killed
    fi
done
((kills == wanted)) || complain "expected $wanted kills of conversions that ran: $kills"
run lmdb images killed --resize 64 --workers 2
[[ $code == 0 && $output == *'written and verified' ]] || complain "expected the conversion to go on after $kills kills"
is_whole
run lmdb images whole --resize 32
fails_like 1 '*whole/train.lmdb was made of other files or with other options: remove it, or choose another place'

# ---- downloads -------------------------------------------------------------------------------

if ! command -v python3 >/dev/null; then
    echo "left out: downloads, for which the test's server needs python3"
    finish
fi

# An archive like CIFAR-100's, and a server on loopback that breaks off the first two answers.
python3 - <<'END'
import io, os, random, tarfile
random.seed(1)
with tarfile.open("archive.tar.gz", "w:gz") as archive:
    for name, records in (("train.bin", 40), ("test.bin", 10)):
        data = b"".join(bytes([i % 20, i % 100]) + random.randbytes(3072) for i in range(records))
        entry = tarfile.TarInfo("cifar-100-binary/" + name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
with tarfile.open("evil.tar.gz", "w:gz") as archive:
    entry = tarfile.TarInfo("a/../../evil.txt")
    entry.size = 4
    archive.addfile(entry, io.BytesIO(b"evil"))
END
cat >server.py <<'END'
import http.server, os, re, ssl, sys
breaks = [2]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        ranges = not name.startswith("whole-")
        name = name.removeprefix("whole-")
        if name == "circle":
            self.send_response(302)
            self.send_header("Location", "/circle")
            return self.end_headers()
        if name == "trouble":
            return self.send_error(503)
        if not os.path.exists(name):
            return self.send_error(404)
        data = open(name, "rb").read()
        found = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        first = int(found[1]) if found and ranges else 0
        if first >= len(data) and first:
            return self.send_error(416)
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - first))
        self.end_headers()
        rest = data[first:]
        if breaks[0] > 0:
            breaks[0] -= 1
            rest = rest[:len(rest) // 3]
        with open("served", "a") as log:
            print(first, len(rest), file=log)
        self.wfile.write(rest)
    def log_message(self, *arguments):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 1:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
END
# serve PORT [CERTIFICATE]: starts it; its number goes to the file PORT.
serve() {
    python3 server.py "${@:2}" >"$1" &
    servers+=($!)
    for ((i = 0; i < 100; i++)); do
        [[ ! -s $1 ]] || break
        sleep 0.1
    done
}
serve port
url=http://127.0.0.1:$(<port)
digest=$(md5sum archive.tar.gz | cut -d' ' -f1)

export no_proxy=127.0.0.1
run fetch cifar100 fetched --url "$url/archive.tar.gz" --md5 "$digest"
if [[ $messages == *"built without libcurl"* ]]; then
    echo "left out: downloads, without libcurl"
    finish
fi
fails_like 1 "could not download $url/archive.tar.gz: *: call it again: it goes on"
run fetch cifar100 fetched --url "$url/archive.tar.gz" --md5 "$digest"
fails_like 1 "could not download *"
run fetch cifar100 fetched --url "$url/archive.tar.gz" --md5 "$digest"
prints '2 files in fetched: train with --data cifar100:fetched'
[[ $(awk '$1 > 0' served | wc -l) == 2 ]] || complain "expected two downloads that go on: $(<served)"
[[ $(ls fetched) == cifar-100-binary ]] || complain "expected nothing but the data: $(ls fetched)"
run show cifar100:fetched
prints '40 images to train, 10 to test, 100 classes*'
run fetch cifar100 fetched --url "$url/missing"
prints 'cifar100 is in fetched already'

# A server that can't go on; a wrong digest; an archive that was there all along; one that is none.
mkdir other && head -c 1000 archive.tar.gz >other/cifar100.tar.gz.part
run fetch cifar100 other --url "$url/whole-archive.tar.gz" --md5 "$digest"
prints '2 files in other*'
run fetch cifar100 wrong --url "$url/archive.tar.gz"
fails_like 1 "what came from * is not what was published: its MD5 is $digest, not 03b5dce01913d631647c71ecec9e9cb8: call it again"
[[ -z $(ls wrong) ]] || complain "expected nothing to be left"
run fetch cifar100 wrong --url "$url/archive.tar.gz" --md5 "${digest//[0-9]/0}"
fails_like 1 "what came from * is not what --md5 says: its MD5 is $digest, not ${digest//[0-9]/0}: check the digest, or call it again"
run fetch cifar100 wrong --url "$url/archive.tar.gz" --md5 "${digest}0"
fails 2 "--md5: '${digest}0' is no MD5: give its 32 hexadecimal digits"
run fetch cifar100 upper --url "$url/archive.tar.gz" --md5 "${digest^^}"
prints '2 files in upper*'
mkdir there && cp archive.tar.gz there/cifar100.tar.gz.part
run fetch cifar100 there --url "$url/archive.tar.gz" --md5 "$digest" --quiet
prints ''
run fetch cifar100 none --url "$url/missing"
fails_like 1 "could not download $url/missing: *404: check the address, or give another with --url"
run fetch cifar100 none --url "$url/circle"
fails_like 1 "could not download $url/circle: *redirect*: check the address, or give another with --url"
run fetch cifar100 none --url "gibberish://here"
fails_like 1 "could not download gibberish://here: *: check the address, or give another with --url"
if openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -keyout key.pem -out certificate.pem 2>/dev/null; then
    cat key.pem >>certificate.pem
    serve secure_port certificate.pem
    run fetch cifar100 none --url "https://127.0.0.1:$(<secure_port)/archive.tar.gz"
    fails_like 1 "could not download https://*certificate*: install the system's certificates (ca-certificates), and check its clock"
fi
run fetch cifar100 none --url "$url/trouble"
fails_like 1 "could not download $url/trouble: *503: call it again: it goes on"
echo 'not an archive' >text
run fetch cifar100 none --url "$url/text" --md5 "$(md5sum text | cut -d' ' -f1)"
fails_like 1 "*the archive is damaged"
rm -f none/*.part
run fetch cifar100 none --url "$url/evil.tar.gz" --md5 "$(md5sum evil.tar.gz | cut -d' ' -f1)"
fails_like 1 "*the name a/../../evil.txt leads out of the folder"
[[ ! -e evil.txt ]] || complain "something was unpacked outside"

finish
