// npm run test:s3: the tests that every storage passes, on real servers of the protocol of S3: versitygw, which Go builds
// from its module, and moto, which pip installs. Both go into a folder that is removed afterwards, and listen on
// loopback. A server that cannot be installed here is named; without any, the run fails. Plain JavaScript for Node 20.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { finish, runScript, setUp } from '../setup.mjs';
import { forwardSignals, runChild } from '../setup-process.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const keys = { access_key_id: 'medley-test', secret_access_key: 'a-secret-of-this-test' };
const start_ms_max = 30_000;

const servers = [
  {
    name: 'versitygw 1.8.0',
    verifies_signatures: true,
    install: (folder) =>
      run('go', ['install', 'github.com/versity/versitygw/cmd/versitygw@v1.8.0'], { GOBIN: join(folder, 'go') }),
    command: (folder, port) => {
      for (const name of ['objects', 'attributes']) mkdirSync(join(folder, name));
      const access = ['--access', keys.access_key_id, '--secret', keys.secret_access_key];
      // Its own folder for attributes: not every disk has those of files.
      const backend = ['posix', '--sidecar', join(folder, 'attributes'), join(folder, 'objects')];
      return [join(folder, 'go', 'versitygw'), [...access, '--port', `127.0.0.1:${port}`, ...backend]];
    },
  },
  {
    name: 'moto 5.2.5',
    verifies_signatures: false,
    install: async (folder) => {
      await run('python3', ['-m', 'venv', join(folder, 'python')]);
      await run(join(folder, 'python', 'bin', 'pip'), ['install', '--quiet', 'moto[server,s3]==5.2.5']);
    },
    command: (folder, port) => [join(folder, 'python', 'bin', 'moto_server'), ['-H', '127.0.0.1', '-p', String(port)]],
  },
];

/** Runs a program to its end. Throws its last words if it fails, or is not there. */
async function run(command, args, env = {}) {
  let output = '';
  const onOutput = (chunk) => (output += chunk);
  const code = await runChild(command, args, { env: { ...process.env, ...env }, onOutput });
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output.trim().split('\n').at(-1)}`);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function answers(port) {
  for (const until = Date.now() + start_ms_max; Date.now() < until; await sleep(100)) {
    const is_open = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.once('close', () => resolve(false)).setTimeout(1_000, () => socket.destroy());
    });
    if (is_open) return;
  }
  throw new Error(`nothing listens on port ${port}`);
}

/** Installs and starts a server. Answers what the tests need of it, and what stops it. */
async function start({ name, verifies_signatures, install, command }, folder) {
  console.log(`${name} is being installed…`);
  await install(folder);
  const port = await freePort();
  const [program, args] = command(folder, port);
  let pid;
  let output = '';
  const ended = runChild(program, args, { onStart: (id) => (pid = id), onOutput: (chunk) => (output += chunk) });
  const stop = async () => {
    if (pid !== undefined) process.kill(pid);
    await ended;
  };
  try {
    await Promise.race([answers(port), ended.then(() => Promise.reject(new Error(output.trim().split('\n').at(-1))))]);
  } catch (error) {
    await stop().catch(() => undefined); // it has ended by itself
    throw error;
  }
  return { tested: { name, endpoint: `http://127.0.0.1:${port}`, verifies_signatures, ...keys }, stop };
}

async function testAll(place, folder) {
  const started = [];
  try {
    for (const server of servers) {
      try {
        started.push(await start(server, folder));
      } catch (error) {
        console.log(`NOT RUN: ${server.name}, which cannot be had here: ${error.message}`);
      }
    }
    const names = started.map(({ tested }) => tested.name);
    if (names.length === 0) return 1;
    const words = ['run', '--config', 'test/vitest.s3.config.ts'];
    const more_env = { MEDLEY_TEST_S3: JSON.stringify(started.map(({ tested }) => tested)) };
    const code = await runScript(root, place, 'test/node_modules/vitest/vitest.mjs', words, { cwd: root, more_env });
    console.log(`Ran on ${names.join(' and ')}.`);
    return code;
  } finally {
    for (const { stop } of started) await stop();
  }
}

forwardSignals();
await finish(async () => {
  const place = await setUp(root, ['.', 'test']);
  const folder = mkdtempSync(join(tmpdir(), 'medley-s3-'));
  try {
    return await testAll(place, folder);
  } finally {
    place.leave();
    rmSync(folder, { recursive: true, force: true });
  }
});
