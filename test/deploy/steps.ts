import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { repository } from '../docs/document.ts';
import { temporaryFolder } from '../helpers/embedded.ts';
import { freePort } from '../helpers/free-port.ts';
import { makeImage, pack, run } from '../package/packed.ts';

/** For npm run test:deploy: the steps of the Dockerfile in clean folders, and the chart by the real helm. */
const folder = temporaryFolder(0o755);
const app = join(folder, 'app');

/** Of both layers: debian:trixie-slim has 78 MB, measured without libatomic1. */
const image_bytes_max = 400e6 - 80e6;

function sizeOf(path: string): number {
  const entries = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return entries.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

/** Somebody without rights whom this machine knows by name, as PostgreSQL asks: the image adds one of its own to its files. */
function namedUser(): { uid: number; gid: number } {
  const idOf = (flag: string) => Number(spawnSync('id', [flag, 'nobody'], { encoding: 'utf8' }).stdout);
  return { uid: idOf('-u'), gid: idOf('-g') };
}

describe('the steps of the Dockerfile', () => {
  beforeAll(() => {
    const tarball = pack(join(folder, 'tarball'), ['--name', 'medley']);
    const words = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', tarball];
    const { code, output } = run('npm', ['install', '--prefix', app, ...words], folder);
    if (code !== 0) throw new Error(output);
    cpSync(join(repository, 'deploy/image/health.mjs'), join(app, 'health.mjs'));
    const pruned = run(process.execPath, [join(repository, 'deploy/image/prune.mjs'), app], folder);
    if (pruned.code !== 0) throw new Error(pruned.output);
  });

  it('make an image of at most 400 MB', () => {
    expect(sizeOf(app)).toBeLessThan(image_bytes_max);
  });

  it('make a service that runs as its own user, writes to its data folder alone, answers the health check, and ends by SIGTERM', async () => {
    const data = join(folder, 'data');
    mkdirSync(data, { mode: 0o700 });
    const user = process.getuid?.() === 0 ? namedUser() : undefined;
    if (user) {
      chownSync(data, user.uid, user.gid);
      run('chmod', ['-R', 'a+rX', app], folder);
    }
    const port = String(await freePort());
    const PATH = `${app}/bin:/usr/bin:/bin`;
    const env = {
      PATH,
      MEDLEY_DATA: data,
      NODE_COMPILE_CACHE: join(data, 'compile-cache'),
      HOST: '127.0.0.1',
      PORT: port,
    };
    const health = () => spawnSync(join(app, 'bin/node'), [join(app, 'health.mjs')], { env }).status;
    expect(health()).toBe(1);
    const before = sizeOf(app);
    const child = spawn(join(app, 'bin/node'), [join(app, 'bin/medley'), 'start'], { cwd: data, env, ...user });
    const ended = once(child, 'exit');
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (printed += String(chunk)));
    try {
      await expect.poll(() => child.exitCode !== null || printed.includes('hello.png'), { timeout: 60_000 }).toBe(true);
      expect(printed).toContain('hello.png');
      const service = { printed, url: '', stop: () => Promise.resolve(null) };
      expect(await makeImage(service, folder)).toEqual({ format: 'png', width: 768, height: 768 });
      expect(health()).toBe(0);
    } finally {
      child.kill('SIGTERM');
      await ended;
    }
    expect(child.exitCode).toBe(0);
    expect(existsSync(join(data, 'postgres/data/postmaster.pid'))).toBe(false);
    expect(sizeOf(app)).toBe(before);
  });
});

describe('the chart', () => {
  const helm = process.env['MEDLEY_TEST_HELM'] ?? 'helm';
  const chart = join(repository, 'deploy/helm/medley');
  // A helm that Go has built knows no version of Kubernetes but an old one.
  const needed = [
    '--kube-version',
    '1.33.0',
    '--set',
    'baseUrl=https://ai.example.com',
    '--set',
    'existingSecret=medley',
  ];
  const template = (...more: string[]) => run(helm, ['template', 'ai', chart, ...needed, ...more], folder);

  it('passes the lint of helm', () => {
    const { code, output } = run(helm, ['lint', '--strict', chart, ...needed], folder);
    expect({ code, output }).toMatchObject({ code: 0 });
  });

  it('renders each object once, with its roles, and reads secrets from the one that is there', () => {
    const all = [
      '--set',
      'ingress.enabled=true',
      '--set',
      'ingress.host=ai.example.com',
      '--set',
      'metrics.serviceMonitor=true',
    ];
    const scaled = [
      '--set',
      'worker.autoscaling.oldestQueuedSeconds=30',
      '--set',
      'api.autoscaling.callsPerSecond=500',
    ];
    const { code, output } = template(...all, ...scaled);
    expect({ code, output }).toMatchObject({ code: 0 });
    const objects = parseAllDocuments(output).map((document) => document.toJS());
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(names.toSorted()).toEqual([
      'ConfigMap ai-config',
      'ConfigMap ai-migrations',
      'Deployment ai-api',
      'Deployment ai-worker',
      'HorizontalPodAutoscaler ai-api',
      'HorizontalPodAutoscaler ai-worker',
      'Ingress ai',
      'Job ai-migrations',
      'PodDisruptionBudget ai-api',
      'PodDisruptionBudget ai-worker',
      'Service ai',
      'Service ai-metrics',
      'ServiceMonitor ai',
    ]);
    for (const { spec } of objects.filter(({ kind }) => kind === 'Deployment' || kind === 'Job')) {
      const { securityContext, containers } = spec.template.spec;
      expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001 });
      expect(containers[0]).toMatchObject({
        image: 'medley:0.1.0',
        securityContext: { readOnlyRootFilesystem: true },
        envFrom: [{ secretRef: { name: 'medley' } }],
      });
    }
    expect(output).not.toMatch(/kind: Secret/);
    expect(output).toContain('medley_task_oldest_queued_seconds');
  });

  it('refuses values that it does not know, and needs the address and the secret', () => {
    expect(template('--set', 'replicas=3')).toMatchObject({ code: 1 });
    expect(run(helm, ['template', 'ai', chart, '--kube-version', '1.33.0'], folder)).toMatchObject({ code: 1 });
  });
});
