import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openProber } from '../../src/storage/probe.ts';
import { childrenOf, endless, startProbing } from './probing.ts';
import * as samples from './samples.ts';
import { depth } from '../helpers/depth.ts';

const { probe: probeMedia, probeAgain, close } = openProber();

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'medley-probe-test-'));
  await probeMedia(samples.wav(1)); // the first one waits for a process to start
});
afterAll(async () => {
  close();
  await rm(folder, { recursive: true, force: true });
});

/** A file of each kind, and what it measures. */
const kinds = {
  PNG: { make: () => samples.sampleImage('png', 64, 32), is: ['image', 'image/png', 'png', 64, 32] },
  JPEG: { make: () => samples.sampleImage('jpeg', 64, 32), is: ['image', 'image/jpeg', 'jpg', 64, 32] },
  'JPEG on its side': {
    make: () => samples.sampleImage('jpeg', 64, 32, 6),
    is: ['image', 'image/jpeg', 'jpg', 32, 64],
  },
  'JPEG upside down': {
    make: () => samples.sampleImage('jpeg', 64, 32, 3),
    is: ['image', 'image/jpeg', 'jpg', 64, 32],
  },
  WebP: { make: () => samples.sampleImage('webp', 64, 32), is: ['image', 'image/webp', 'webp', 64, 32] },
  'WebP on its side': {
    make: () => samples.sampleImage('webp', 64, 32, 8),
    is: ['image', 'image/webp', 'webp', 32, 64],
  },
  GIF: { make: () => samples.sampleImage('gif', 64, 32), is: ['image', 'image/gif', 'gif', 64, 32] },
  AVIF: { make: () => samples.sampleImage('avif', 64, 32), is: ['image', 'image/avif', 'avif', 64, 32] },
  MP4: { make: () => samples.mp4(96, 64, 30), is: ['video', 'video/mp4', 'mp4', 96, 64, 1.25] },
  'MP4 with its index last': {
    make: () => samples.encode(96, 64, 30),
    is: ['video', 'video/mp4', 'mp4', 96, 64, 1.25],
  },
  'MP4 in fragments': {
    make: () => samples.mp4(96, 64, 30, 'fragmented'),
    is: ['video', 'video/mp4', 'mp4', 96, 64, 1.25],
  },
  'MP4 on its side': {
    make: () => samples.mp4(96, 64, 30, 'rotated'),
    is: ['video', 'video/mp4', 'mp4', 64, 96, 1.25],
  },
  MOV: { make: () => samples.mp4(96, 64, 30, 'mov'), is: ['video', 'video/quicktime', 'mov', 96, 64, 1.25] },
  WebM: { make: () => samples.webm(96, 64, 25), is: ['video', 'video/webm', 'webm', 96, 64, 2.5] },
  'WebM of sound alone': {
    make: () => samples.sampleAudio('webm', 75),
    is: ['audio', 'audio/webm', 'weba', undefined, undefined, 1.5],
  },
  WAV: { make: () => samples.wav(1.5), is: ['audio', 'audio/wav', 'wav', undefined, undefined, 1.5] },
  'WAV of 9,877 samples': {
    make: () => samples.wav(9877 / 8000),
    is: ['audio', 'audio/wav', 'wav', undefined, undefined, 1.235],
  },
  MP3: { make: () => samples.mp3(100), is: ['audio', 'audio/mpeg', 'mp3', undefined, undefined, 2.612] },
  'MP3 behind a tag': {
    make: () => Buffer.concat([samples.id3(300), samples.mp3(100)]),
    is: ['audio', 'audio/mpeg', 'mp3', undefined, undefined, 2.612],
  },
  FLAC: { make: () => samples.flac(20), is: ['audio', 'audio/flac', 'flac', undefined, undefined, 1.858] },
  'FLAC behind a tag': {
    make: () => Buffer.concat([samples.id3(300), samples.flac(20)]),
    is: ['audio', 'audio/flac', 'flac', undefined, undefined, 1.858],
  },
  Ogg: { make: () => samples.sampleAudio('ogg', 75), is: ['audio', 'audio/ogg', 'ogg', undefined, undefined, 1.5] },
  AAC: { make: () => samples.sampleAudio('aac', 100), is: ['audio', 'audio/aac', 'aac', undefined, undefined, 2.322] },
  M4A: { make: () => samples.sampleAudio('mp4', 100), is: ['audio', 'audio/mp4', 'm4a', undefined, undefined, 2.322] },
} satisfies Record<string, { make: () => Promise<Uint8Array> | Uint8Array; is: (string | number | undefined)[] }>;

type Kind = keyof typeof kinds;
const names = Object.keys(kinds) as Kind[];
const bytesOf = async (kind: Kind) => Buffer.from(await kinds[kind].make());

async function put(name: string, bytes: Uint8Array): Promise<string> {
  await writeFile(join(folder, name), bytes);
  return join(folder, name);
}

function startService(script: string) {
  const service = startProbing(script);
  onTestFinished(() => void service.kill('SIGKILL'));
  return service;
}

describe('probeMedia', () => {
  test.each(names)('measures %s in memory and on disk', async (kind) => {
    const bytes = await bytesOf(kind);
    const [type, content_type, extension, width, height, duration] = kinds[kind].is;
    const expected = {
      ok: true,
      probe: {
        type,
        content_type,
        extension,
        size_bytes: bytes.length,
        ...(width !== undefined && { width, height }),
        ...(duration !== undefined && { duration }),
      },
    };
    expect(await probeMedia(bytes)).toEqual(expected);
    // The name lies on purpose.
    expect(await probeMedia(await put('picture.svg', bytes))).toEqual(expected);
  });

  test('reads the current file, not the previous one', async () => {
    for (const format of ['png', 'jpeg', 'webp', 'gif', 'avif'] as const) {
      for (const width of [20, 30]) {
        const path = await put('same-name', await samples.sampleImage(format, width, 10));
        expect(await probeMedia(path)).toMatchObject({ probe: { width, height: 10 } });
      }
    }
  });

  test('reads a view of a larger buffer as what it shows', async () => {
    const bytes = samples.wav(1);
    const inside = Buffer.concat([Buffer.alloc(1000, 1), bytes, Buffer.alloc(1000, 1)]).subarray(
      1000,
      1000 + bytes.length,
    );
    expect(await probeMedia(inside)).toMatchObject({ ok: true, probe: { size_bytes: bytes.length, duration: 1 } });
    expect(inside.length).toBe(bytes.length);
  });

  test('throws for an absent file', async () => {
    await expect(probeMedia(join(folder, 'absent'))).rejects.toThrow('ENOENT');
  });

  test('accepts much longer files than anyone makes', async () => {
    const hour = samples.mp3(137_813);
    const expected = { ok: true, probe: { duration: 3600.013, size_bytes: hour.length } };
    expect(await probeAgain(hour)).toMatchObject(expected);
    expect(await probeAgain(await put('hour.mp3', hour))).toMatchObject(expected);
    // Above the size that is walked through, what the file declares is believed.
    const day = await put('three-hours.mp3', Buffer.concat([hour, hour, hour]));
    expect(await probeMedia(day)).toMatchObject({ ok: true, probe: { duration: expect.closeTo(10_800, -2) } });
  });

  test('measures many at once', async () => {
    const files = await Promise.all(names.map(bytesOf));
    const results = await Promise.all([...files, ...files, ...files].map((bytes) => probeMedia(bytes)));
    expect(results.filter((result) => !result.ok)).toEqual([]);
  });

  test('needs no right to the file that the process could have: bytes are handed over as it asks for them', async () => {
    const locked = join(folder, 'locked');
    await mkdir(locked, { mode: 0o700 });
    const path = join(locked, 'hour.ogg');
    const bytes = await samples.sampleAudio('ogg', 6_000); // more than one block of what is handed over at once
    await writeFile(path, bytes, { mode: 0o600 });
    expect(bytes.length).toBeGreaterThan(2 ** 18);
    const expected = { ok: true, probe: { content_type: 'audio/ogg', duration: 120, size_bytes: bytes.length } };
    expect(await probeMedia(path)).toMatchObject(expected);
    expect(await probeMedia(bytes)).toMatchObject(expected);
  });
});

describe('a file that is cut off', () => {
  /** Those that say how long they are, or have an end. */
  const bounded = names.filter((kind) => !/MP3|FLAC|Ogg|AAC/.test(kind));

  test.each(bounded)('is no longer %s, wherever it is cut', async (kind) => {
    const bytes = await bytesOf(kind);
    const cuts = [...Array.from({ length: 8 }, (_, i) => Math.floor((bytes.length * i) / 8)), bytes.length - 1];
    for (const length of cuts) {
      const result = await probeMedia(bytes.subarray(0, length));
      // A GIF without its last byte, an end mark, is complete to every decoder.
      expect(
        result.ok && !(kind === 'GIF' && length === bytes.length - 1),
        `${length} bytes: ${JSON.stringify(result)}`,
      ).toBe(false);
    }
  });

  test.each([
    ['MP3', () => samples.mp3(1000), 26.1],
    ['FLAC', () => samples.flac(100), 9.3],
    ['AAC', () => samples.sampleAudio('aac', 1000), 23.2],
  ] as const)('lasts as long as the rest of a stream: %s', async (_, make, whole) => {
    const bytes = await make();
    const result = await probeMedia(bytes.subarray(0, Math.floor(bytes.length / 2)));
    const duration = result.ok ? result.probe.duration : undefined;
    expect(duration).toBeGreaterThan(whole * 0.4);
    expect(duration).toBeLessThan(whole * 0.6);
  });

  test('is no longer Ogg', async () => {
    const bytes = await samples.sampleAudio('ogg', 1500);
    expect(await probeMedia(bytes.subarray(0, bytes.length / 2))).toMatchObject({ ok: false, reason: 'damaged' });
  });

  test('is recognized by its index alone', async () => {
    const bytes = await bytesOf('MP4');
    const media = bytes.indexOf('mdat', 0, 'latin1') - 4;
    expect(await probeMedia(bytes.subarray(0, media))).toMatchObject({ ok: false, reason: 'damaged' });
  });

  test('is whole as a WAV without a length that was written into a pipe', async () => {
    const bytes = samples.wav(1);
    bytes.writeUInt32LE(0xffff_ffff, 4);
    bytes.writeUInt32LE(0xffff_ffff, 40);
    expect(await probeMedia(bytes)).toMatchObject({ ok: true, probe: { duration: 1 } });
  });

  test('is refused, unlike an image with bytes after its end, which is accepted', async () => {
    for (const kind of ['PNG', 'JPEG'] as const) {
      const bytes = Buffer.concat([await bytesOf(kind), Buffer.from('<script>')]);
      expect(await probeMedia(bytes)).toMatchObject({ ok: true, probe: { width: 64, height: 32 } });
    }
  });
});

describe('an unsupported file', () => {
  test.each([
    ['nothing', '', 'empty'],
    ['one byte', '\x89', 'unrecognized'],
    ['text', 'hello', 'unrecognized'],
    ['HTML', '<!doctype html><script>alert(1)</script>', 'unrecognized'],
    ['SVG', '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', 'unrecognized'],
    ['PDF', '%PDF-1.7\n', 'unrecognized'],
    ['ZIP', 'PK\x03\x04', 'unrecognized'],
    ['TIFF', 'II*\0\x08\0\0\0', 'unrecognized'],
    ['an HLS playlist', '#EXTM3U\nhttp://169.254.169.254/\n', 'unrecognized'],
    ['Matroska that is not WebM', '\x1aE\xdf\xa3\x8b\x42\x82\x88matroska', 'unrecognized'],
    ['HEIC', '\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'unrecognized'],
    ['a RIFF of another kind', 'RIFF\x04\0\0\0AVI ', 'unrecognized'],
    ['a PNG of a signature', '\x89PNG\r\n\x1a\n', 'truncated'],
    ['a JPEG of a signature', '\xff\xd8\xff', 'truncated'],
    ['an MP4 of a brand', '\0\0\0\x18ftypisom\0\0\0\0isommp42', 'damaged'],
    ['an ID3 tag around nothing', 'ID3\x03\0\0\0\0\0\0', 'damaged'],
    ['an Ogg page of nothing', 'OggS', 'damaged'],
  ])('is refused as %s', async (_, text, reason) => {
    const bytes = Buffer.from(text, 'latin1');
    expect(await probeMedia(bytes)).toMatchObject({ ok: false, reason, problem: expect.any(String) });
    expect(await probeMedia(await put('x.png', bytes))).toMatchObject({ ok: false, reason });
  });
});

describe('a hostile file', () => {
  const patched = (bytes: Buffer, at: number, value: number) => {
    bytes.writeUInt32BE(value, at);
    return bytes;
  };

  /** A chunk of a PNG. */
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, check]);
  };

  /** A PNG whose header declares these sides and whose data is that of a small one. */
  const png = async (width: number, height: number, ...more: Buffer[]) => {
    const small = await bytesOf('PNG');
    const header = Buffer.from(small.subarray(16, 29));
    header.writeUInt32BE(width, 0);
    header.writeUInt32BE(height, 4);
    return Buffer.concat([small.subarray(0, 8), chunk('IHDR', header), ...more, small.subarray(33)]);
  };

  test.each([
    [2 ** 31 - 1, 2 ** 31 - 1],
    [60_000, 60_000],
    [16_000, 16_000],
    [100_000, 1],
    [0, 10],
  ])('that declares %i × %i pixels is refused', async (width, height) => {
    expect(await probeMedia(await png(width, height))).toMatchObject({ ok: false, reason: 'damaged' });
  });

  test('that unpacks to 300 MB of text is measured without unpacking it', async () => {
    const bomb = deflateSync(Buffer.alloc(300_000_000));
    const bytes = await png(64, 32, chunk('zTXt', Buffer.concat([Buffer.from('a\0\0'), bomb])));
    expect(await probeMedia(bytes)).toMatchObject({ ok: true, probe: { width: 64, height: 32 } });
  });

  test('that declares audio of no length or endless audio is refused', async () => {
    const still = samples.wav(1);
    still.writeUInt32LE(0, 40);
    expect(await probeMedia(still)).toMatchObject({ ok: false, reason: 'damaged' });
    const slow = samples.wav(20);
    slow.writeUInt32LE(1, 24); // one sample a second
    expect(await probeMedia(slow)).toMatchObject({ ok: false, reason: 'damaged' });
    const no_block = samples.wav(1);
    no_block.writeUInt16LE(0, 32);
    expect(await probeMedia(no_block)).toMatchObject({ ok: false, reason: 'damaged' });
    const instant = await bytesOf('MP4');
    const header = instant.indexOf('mdhd', 0, 'latin1');
    expect(await probeMedia(patched(instant, header + 16, 2 ** 31 - 1))).toMatchObject({
      ok: false,
      reason: 'damaged',
    });
  });

  test('that needs all of its bytes in memory is refused', async () => {
    const mp4 = await bytesOf('MP4');
    const index = patched(Buffer.alloc(40_000_000), 0, 40_000_000);
    index.write('moov', 4, 'latin1');
    const path = await put('index.mp4', Buffer.concat([mp4.subarray(0, mp4.readUInt32BE(0)), index]));
    expect(await probeMedia(path)).toMatchObject({ ok: false, reason: 'too_large' });
  });

  test('that leads the parser into an endless loop is given up after 1.5 s of a processor and delays no other', async () => {
    const started = performance.now();
    const hanging = probeMedia(endless);
    const others = await Promise.all(Array.from({ length: 20 }, () => probeMedia(samples.wav(1))));
    const others_ms = performance.now() - started;
    expect(others.every((result) => result.ok)).toBe(true);
    expect(await hanging).toMatchObject({ ok: false, reason: 'timeout' });
    expect(performance.now() - started).toBeLessThan(60_000); // 10 s at most, and what a busy machine adds
    expect(others_ms).toBeLessThan(performance.now() - started);
  });

  test('that is too large to parse and claims to last no time is refused', async () => {
    const put70 = (name: string, declared: number) => put(name, samples.mp3Declaring(declared, 170_000));
    expect(await probeAgain(await put70('honest.mp3', 169_999))).toMatchObject({ ok: true });
    const lie = await probeAgain(await put70('lie.mp3', 10));
    expect(lie).toMatchObject({ ok: false, reason: 'damaged' });
    const long = samples.flac(1);
    const flac = await put('lie.flac', Buffer.concat([long, Buffer.alloc(70_000_000)]));
    expect(await probeAgain(flac)).toMatchObject({ ok: false, reason: 'damaged' });
  });

  test('of random or mutated bytes gives a result, and one that can be true', async () => {
    const seeds = await Promise.all(names.filter((kind) => !kind.startsWith('FLAC')).map(bytesOf));
    const mutation = fc.record({
      seed: fc.nat(seeds.length - 1),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      value: fc.constantFrom(0, 1, 0x7fff_ffff, 0xffff_ffff, 0x0100_0000),
      cut: fc.boolean(),
    });
    const mutated = fc.sample(mutation, depth(20, 60)).map(({ seed, at, value, cut }) => {
      const bytes = Buffer.from(seeds[seed] ?? '');
      const position = Math.floor(at * at * (bytes.length - 4)); // mostly in the headers
      bytes.writeUInt32BE(value, position);
      return cut ? bytes.subarray(0, position + 4) : bytes;
    });
    const random = fc.sample(fc.uint8Array({ maxLength: 2000 }), depth(15, 40));
    for (const bytes of [...mutated, ...random]) {
      const result = await probeMedia(bytes);
      const plausible =
        !result.ok ||
        (result.probe.size_bytes === bytes.length &&
          [result.probe.width, result.probe.height].every(
            (side) => side === undefined || (side >= 1 && side <= 65_535),
          ) &&
          (result.probe.duration === undefined || (result.probe.duration > 0 && result.probe.duration <= 86_400)));
      expect(plausible, `${JSON.stringify(result)}`).toBe(true);
    }
  });
});

describe('the processes that measure files', () => {
  const isAlive = (pid: number) =>
    readFile(`/proc/${pid}/stat`, 'utf8').then(
      (text) => !/\) Z/.test(text),
      () => false,
    );

  test('do not keep the service from ending', async () => {
    const service = startService(`await probeMedia(Buffer.from('x')); console.log('measured');`);
    await once(service.stdout, 'data');
    const ended = await once(service, 'exit');
    expect(ended).toEqual([0, null]);
  });

  test.each([
    ['at rest', `await probeMedia(Buffer.from('x')); console.log('now'); setInterval(() => {}, 1000);`],
    [
      'caught in an endless loop',
      `await probeMedia(Buffer.from('x')); console.log('now'); for (;;) await probeMedia(Buffer.from('${endless.toString('base64')}', 'base64'));`,
    ],
  ])('end with a service that is killed, even %s', async (_, script) => {
    const service = startService(script);
    await once(service.stdout, 'data');
    const children: number[] = [];
    await vi.waitFor(
      async () => {
        children.splice(0, children.length, ...(await childrenOf(service.pid ?? 0)));
        expect(children).toHaveLength(1); // none while one is replaced
      },
      { timeout: 120_000 },
    );
    service.kill('SIGKILL');
    await vi.waitFor(async () => expect(await Promise.all(children.map(isAlive))).toEqual([false]), {
      timeout: 120_000,
    });
  });

  const killAll = async () => {
    for (const pid of (await childrenOf(process.pid)).filter((child) => existsSync(`/proc/${child}`))) {
      process.kill(pid, 'SIGKILL'); // one that was replaced may be gone since it was listed
    }
  };

  test.runIf(process.getuid?.() === 0)(
    'are no root where the service is: they belong to a user who owns nothing',
    async () => {
      await probeMedia(samples.wav(1));
      const statuses = await Promise.all(
        (await childrenOf(process.pid)).map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')),
      );
      const users = statuses.map((status) => /^Uid:\s*(.*)$/m.exec(status)?.[1]?.split('\t'));
      expect(users).toContainEqual(['61183', '61183', '61183', '61183']);
      expect(statuses.map((status) => /^Groups:[ \t]*(.*?)[ \t]*$/m.exec(status)?.[1])).toContain('');
    },
  );

  test('harm no file when they are killed at rest', async () => {
    await Promise.all([probeMedia(samples.wav(1)), probeMedia(samples.wav(1))]);
    await killAll();
    const results = await Promise.all(Array.from({ length: 5 }, () => probeMedia(samples.wav(1))));
    expect(results.every((result) => result.ok)).toBe(true);
  });

  test('are replaced when a file makes them overflow, and no others', async () => {
    const result = await probeMedia(await overflowing());
    expect(result.ok ? 'ok' : result.reason).toMatch(/^(crashed|timeout)$/); // a busy machine is too slow to crash
    expect(await probeMedia(samples.wav(1))).toMatchObject({ ok: true });
  });
});

/** An MP4 of 12 MB whose list of frame times becomes 100 MB and more in the parser's heap. */
async function overflowing(): Promise<Buffer> {
  const entries = 1_500_000;
  const times = Buffer.alloc(16 + entries * 8, 1);
  times.writeUInt32BE(times.length, 0);
  times.write('stts', 4, 'latin1');
  times.writeUInt32BE(0, 8);
  times.writeUInt32BE(entries, 12);
  const bytes = await bytesOf('MP4');
  const at = bytes.indexOf('stts', 0, 'latin1') - 4;
  const grown = times.length - bytes.readUInt32BE(at);
  for (const box of ['moov', 'trak', 'mdia', 'minf', 'stbl']) {
    const start = bytes.indexOf(box, 0, 'latin1') - 4;
    bytes.writeUInt32BE(bytes.readUInt32BE(start) + grown, start);
  }
  return Buffer.concat([bytes.subarray(0, at), times, bytes.subarray(at + times.length - grown)]);
}
