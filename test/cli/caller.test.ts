import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync, chmodSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Call, Task } from '../../clients/typescript/src/index.ts';
import { ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';
import { as_terminal, Person } from './caller.ts';

let test: TestApp;
let client: Client;
let owner: Someone;
let receiver: Receiver;
let person: Person;

beforeAll(async () => {
  test = await startTestApp({ yaml: 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n' });
  receiver = await startReceiver();
  owner = await ownerOfNew(test);
  client = await test.client({ account_id: owner.account_id });
});
afterAll(async () => {
  await test?.stop();
  await receiver?.stop();
});
beforeEach(() => {
  person = new Person({ MEDLEY_URL: test.url, MEDLEY_API_KEY: client.key });
});
afterEach(() => person.remove());

const at = (name: string) => join(person.folder, name);
const credentials = (of = person) => join(of.folder, 'config/medley/credentials.json');

describe('medley login', () => {
  beforeEach(() => {
    person.remove();
    person = new Person();
  });

  it('gets a key by a code, keeps it for this person alone, and logout deletes it', async () => {
    const login = person.start(['login', test.url, '--json']);
    await expect.poll(() => login.error, { timeout: 120_000 }).toMatch(/Code +[A-Z]{4}-[A-Z]{4}/);
    const [, code = ''] = /Code +(\S+)/.exec(login.error) ?? [];
    expect(login.error).toContain(`${test.url}/device?code=${code}`);
    okBody(await owner.post(`${owner.base}/device-login`, { code, name: 'my laptop' }));
    expect(await login.ended, login.error).toBe(0);
    expect(JSON.parse(login.out.toString())).toMatchObject({ url: test.url, key: { name: 'my laptop' } });
    const stored = readFileSync(credentials(), 'utf8');
    const [key = ''] = /mdl_\w{36}/.exec(stored) ?? [];
    expect(login.out.toString() + login.error).not.toContain(key);
    expect(statSync(credentials()).mode & 0o777).toBe(0o600);

    const who = await person.json<{ account: object; key: object }>(['whoami']);
    expect(who).toMatchObject({ account: { id: owner.account_id, name: 'Own' }, key: { name: 'my laptop' } });
    expect(await person.json(['logout'])).toEqual({ url: test.url, key_deleted: true });
    expect(readFileSync(credentials(), 'utf8')).not.toContain(key);
    const { status } = await fetch(`${test.url}/v1/key`, { headers: { authorization: `Bearer ${key}` } });
    expect(status).toBe(401);
    expect(await person.run(['whoami'], { env: { MEDLEY_URL: test.url } })).toMatchObject({
      code: 3,
      error: expect.stringContaining(`npm run -s medley -- login ${test.url}`),
    });
  });

  it('says so when the person refuses', async () => {
    const login = person.start(['login', test.url]);
    await expect.poll(() => login.error, { timeout: 120_000 }).toMatch(/Code +[A-Z]{4}-/);
    const [, code = ''] = /Code +(\S+)/.exec(login.error) ?? [];
    okBody(await owner.post('/dash/device-login/deny', { code }));
    expect(await login.ended).toBe(3);
    expect(login.error).toContain('refused');
    expect(existsSync(credentials())).toBe(false);
  });

  it('--key takes a key from stdin, keeps no wrong one, and logout leaves it as it is', async () => {
    const wrong = await person.run(['login', test.url, '--key'], { stdin: `mdl_${'0'.repeat(36)}\n` });
    expect(wrong).toMatchObject({ code: 3, out: '' });
    expect(existsSync(credentials())).toBe(false);
    expect((await person.run(['login', test.url, '--key'], { stdin: `${client.key}\n` })).code).toBe(0);
    chmodSync(credentials(), 0o644);
    const who = await person.run(['whoami']);
    expect(who).toMatchObject({ code: 0, error: expect.stringContaining('Others on this machine') });
    expect(statSync(credentials()).mode & 0o777).toBe(0o600);
    // The environment wins over what is stored, and names the service too.
    const other = await test.client();
    const by_env = await person.run(['whoami', '--json'], {
      env: { MEDLEY_API_KEY: other.key, MEDLEY_BASE_URL: test.url },
    });
    expect(JSON.parse(by_env.out)).toMatchObject({ account: { id: other.account_id } });
    expect(await person.json(['logout'])).toEqual({ url: test.url, key_deleted: false });
    expect((await client.call('GET', '/v1/key')).status).toBe(200);
  });

  it('a file of credentials that is none is left as it is, and named', async () => {
    mkdirSync(join(person.folder, 'config/medley'), { recursive: true });
    writeFileSync(credentials(), 'not json', { mode: 0o600 });
    const { code, error } = await person.run(['whoami', '--url', test.url]);
    expect([code, error]).toEqual([1, expect.stringContaining(credentials())]);
    expect(readFileSync(credentials(), 'utf8')).toBe('not json');
  });

  it('an address at which nothing listens ends it with 5', async () => {
    const { code, error } = await person.run(['login', 'http://127.0.0.1:9']);
    expect([code, error]).toEqual([5, expect.stringContaining('http://127.0.0.1:9 gave no answer')]);
  });
});

const escape = String.fromCharCode(27);
const kitty_sequence = new RegExp(`${escape}_G([^;]*);([\\w+/=]*)${escape}\\\\`, 'g');

describe('medley run', () => {
  it('makes an image, saves it, and says what it costs', async () => {
    const words = ['run', 'sandbox/image', 'a red cube', '-i', 'width=64', '-i', 'height:=64', '-o', 'cube.png'];
    const { code, out, error } = await person.run(words);
    expect([code, out], error).toEqual([0, 'cube.png\n']);
    expect(error).toMatch(/task_\w+ queued\n[\s\S]*task_\w+: 0\.01 USD, [\d.]+ s\n$/);
    expect(await sharp(at('cube.png')).metadata()).toMatchObject({ width: 64, height: 64, format: 'png' });
    expect(readdirSync(person.folder)).toEqual(['cube.png']);
  });

  it('overwrites nothing, and finds out before anything is paid', async () => {
    writeFileSync(at('there.png'), 'mine');
    const before = await client.call('GET', '/v1/balance');
    const refused = await person.run(['run', 'sandbox/image', 'x', '-o', 'there.png']);
    expect(refused).toMatchObject({ code: 2, error: expect.stringContaining('--force') });
    expect((await client.call('GET', '/v1/balance')).json.available).toEqual(before.json.available);
    expect(readFileSync(at('there.png'), 'utf8')).toBe('mine');
    expect((await person.run(['run', 'sandbox/image', 'x', '-o', 'there.png', '--force'])).code).toBe(0);
    expect((await sharp(at('there.png')).metadata()).format).toBe('png');
  });

  it('prints a file to stdout, and nothing else there', async () => {
    const running = person.start(['run', 'sandbox/image', 'x', '-i', 'width=64', '-i', 'height=64', '-o', '-', '-q']);
    running.child.stdin.end();
    expect(await running.ended, running.error).toBe(0);
    expect((await sharp(running.out).metadata()).format).toBe('png');
    expect(running.error).toBe('');
  });

  it('with --json is one object with the files, and --no-wait prints a task that save finds later', async () => {
    const done = await person.json<Task & { files: string[] }>(['run', 'sandbox/image', 'x', '-o', './']);
    expect(done).toMatchObject({ status: 'succeeded', files: [`${done.id}.png`] });
    const { out } = await person.run(['run', 'sandbox/image', 'later', '--no-wait']);
    const id = out.trim();
    expect((await person.run(['tasks', 'wait', id, '-o', 'later.png'])).out).toBe('later.png\n');
    expect(existsSync(at('later.png'))).toBe(true);
    expect((await person.run(['tasks', 'save', id, '-o', 'again.png'])).code).toBe(0);
    expect(readFileSync(at('again.png'))).toEqual(readFileSync(at('later.png')));
  });

  it('the same --idempotency-key is one task', async () => {
    const words = ['run', 'sandbox/image', 'once', '--no-wait', '--idempotency-key', `key-${client.key_id}`];
    const [first, second] = [await person.run(words), await person.run(words)];
    expect(first.out).toMatch(/^task_/);
    expect(second.out).toBe(first.out);
  });

  it('a task that fails ends it with 1, and a model that is not there names those that are', async () => {
    const failed = await person.run(['run', 'sandbox/image', '[[fail]]', '-o', 'x.png', '--json']);
    expect([failed.code, existsSync(at('x.png'))]).toEqual([1, false]);
    expect(JSON.parse(failed.out)).toMatchObject({ error: { task: { status: 'failed' } } });
    const unknown = await person.run(['run', 'sandbox/imagine', 'x']);
    expect(unknown).toMatchObject({ code: 1, error: expect.stringContaining('sandbox/image, ') });
    expect((await person.run(['run', 'sandbox/chat', 'x'])).error).toContain('medley chat sandbox/chat');
    expect((await person.run(['run', 'sandbox/image', 'x', '-i', 'width=many'])).error).toContain('width');
  });

  it('without money ends with 4, without a key with 3', async () => {
    const poor = await test.client({ credit: '0.00' });
    const { code, error } = await person.run(['run', 'sandbox/image', 'x'], { env: { MEDLEY_API_KEY: poor.key } });
    expect([code, error]).toEqual([4, expect.stringContaining('Top up')]);
    const wrong = { MEDLEY_API_KEY: `mdl_${'0'.repeat(36)}` };
    expect(await person.run(['run', 'sandbox/image', 'x'], { env: wrong })).toMatchObject({ code: 3 });
  });

  it('Ctrl-C cancels the task and says that it costs nothing', async () => {
    const newest = async () => (await client.call('GET', '/v1/tasks?limit=1')).json.data[0];
    const id_before = (await newest())?.id ?? '';
    const running = person.start(['run', 'sandbox/image', '[[hang]]', '-o', 'x.png', '--json']);
    await expect
      .poll(newest)
      .toMatchObject({ id: expect.not.stringContaining(id_before || 'none'), status: 'running' });
    const { id = '' } = (await newest()) ?? {};
    running.child.kill('SIGINT');
    expect(await running.ended).toBe(130);
    expect(running.error).toContain('costs nothing');
    expect((await client.call('GET', `/v1/tasks/${id}`)).json.status).toBe('failed');
    expect(JSON.parse(running.out.toString())).toMatchObject({ error: { task: { error: { type: 'canceled' } } } });
  });

  it('uploads a file that an input names', async () => {
    const png = await sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
    writeFileSync(at('in.png'), png);
    const none = await person.run(['run', 'sandbox/edit', 'x', '-i', 'images=@missing.png']);
    expect(none).toMatchObject({ code: 2, error: expect.stringContaining('missing.png') });
    const words = ['run', 'sandbox/edit', 'x', '-i', 'images=@in.png', '-i', 'mask=@in.png', '-o', 'out.png'];
    const { code, error } = await person.run(words);
    expect(code, error).toBe(0);
    expect(error).toContain('uploading in.png');
    expect((await sharp(at('out.png')).metadata()).format).toBe('png');
    expect((await client.call('GET', '/v1/files')).json.data[0]).toMatchObject({ purpose: 'cli' });
  });

  it('numbers several files', async () => {
    const words = ['run', 'sandbox/image', 'x', '-i', 'width=64', '-i', 'height=64', '-i', 'n=2', '-o', 'two.png'];
    writeFileSync(at('two-2.png'), 'mine');
    expect((await person.run(words)).out).toBe('two-1.png\ntwo-2 (2).png\n');
    expect(readFileSync(at('two-2.png'), 'utf8')).toBe('mine');
  });

  it('shows the image in a terminal that can', async () => {
    const words = ['run', 'sandbox/image', 'x', '-i', 'width=64', '-i', 'height=64', '-o', 'x.png'];
    const kitty = await person.run(words, { env: { ...as_terminal, TERM: 'xterm-kitty', TMUX: '' } });
    expect(kitty.code, kitty.error).toBe(0);
    const shown = [...kitty.out.matchAll(kitty_sequence)];
    expect(shown[0]?.[1]).toMatch(/^a=T,f=100,m=[01]$/);
    const png = Buffer.from(shown.map(([, , text]) => text).join(''), 'base64');
    expect(await sharp(png).metadata()).toMatchObject({ format: 'png', width: 64 });
    expect(kitty.error).toContain('\r'); // the bar
    const iterm = { ...as_terminal, TERM: 'xterm', TERM_PROGRAM: 'iTerm.app', TMUX: '' };
    const other = await person.run([...words, '--force'], { env: iterm });
    expect(other.out).toContain('\u001B]1337;File=inline=1;size=');
    const plain = await person.run([...words, '--force'], { env: { ...as_terminal, TERM: 'xterm', TERM_PROGRAM: '' } });
    expect(plain.out).toBe('x.png\n');
  });
});

describe('medley tasks', () => {
  it('lists, shows and cancels tasks of the account', async () => {
    const { id } = (
      await client.call('POST', '/v1/generate', { model: 'sandbox/image', input: { prompt: '[[hang]]' } })
    ).json;
    const { tasks } = await person.json<{ tasks: Task[] }>(['tasks', '-n', '1']);
    expect(tasks).toMatchObject([{ id }]);
    expect((await person.run(['tasks', 'list', '--model', 'sandbox/image'])).out).toContain(id);
    expect((await person.run(['tasks', 'show', id])).out).toMatch(/Cost +up to 0\.01 USD/);
    expect(await person.json(['tasks', 'cancel', id])).toMatchObject({ id, error: { type: 'canceled' } });
    expect(await person.run(['tasks', 'cancel', id])).toMatchObject({ code: 0 }); // it is canceled already
    expect(await person.run(['tasks', 'show', 'task_none'])).toMatchObject({ code: 1 });
    expect(await person.run(['tasks', '--status', 'odd'])).toMatchObject({ code: 2 });
    expect(await person.run(['tasks', 'wat'])).toMatchObject({
      code: 2,
      error: expect.stringContaining('There is no command "tasks wat". There are: list, show, cancel, save, wait.'),
    });
  });
});

describe('medley calls', () => {
  it('lists chat calls and tasks together, newest first, by what they are and when they were', async () => {
    await person.run(['chat', 'sandbox/chat', 'Hello', '--quiet']);
    const json = (...words: string[]) => person.json<{ calls: Call[] }>(['calls', ...words]);
    await expect.poll(async () => (await json('--kind', 'chat')).calls.length).toBeGreaterThan(0);
    const { id } = (
      await client.call('POST', '/v1/generate?wait=60', { model: 'sandbox/image', input: { prompt: '[[fail]]' } })
    ).json;
    const [newest, ...others] = (await json('--since', '1h')).calls;
    expect(newest).toMatchObject({ id, kind: 'task', status: 'failed', error_type: 'upstream_error' });
    expect(others.map(({ kind }) => kind)).toContain('chat');
    expect((await json('--until', '1h')).calls).toEqual([]);
    const failed = ['calls', '--status', 'failed', '--error', 'upstream_error', '--model', 'sandbox/image', '-n', '1'];
    expect((await person.run(failed)).out).toMatch(new RegExp(`${id} +failed: upstream_error +sandbox/image +- `));
    expect((await person.run(['calls', '--tag', 'none'])).out).toBe('There are no calls.\n');
    const labels = { user: 'eve', metadata: { team: 'red', place: 'x' } };
    const failing = { model: 'sandbox/chat', messages: [{ role: 'user', content: '[[fail]]' }], ...labels };
    const { headers } = await client.call('POST', '/v1/chat/completions', failing);
    const ids = async (...words: string[]) => (await json(...words)).calls.map((each) => each.id);
    const call_id = headers.get('x-request-id');
    await expect.poll(() => ids('--http-status', '502', '--user', 'eve')).toEqual([call_id]);
    expect(await ids('--metadata', 'team=red', '--metadata', 'place=x', '--key', client.key_id)).toEqual([call_id]);
    expect(await ids('--metadata', 'team=red', '--metadata', 'place=y')).toEqual([]);
    expect(await ids('--http-status', '429')).toEqual([]);
    for (const words of [
      ['--kind', 'odd'],
      ['--status', 'odd'],
      ['--http-status', '4xx'],
      ['--metadata', 'team'],
      ['--since', 'odd'],
      ['-n', '0'],
    ])
      expect(await person.run(['calls', ...words]), words.join(' ')).toMatchObject({ code: 2 });
  });
});

describe('medley refusals', () => {
  it('shows what was refused, by reason, key and model, or by what else it is asked', async () => {
    expect((await person.run(['refusals', '--reason', 'failures_pause'])).out).toBe('Nothing was refused.\n');
    const poor = await test.client({ credit: '0' });
    const run = (...words: string[]) => person.run(['refusals', ...words], { env: { MEDLEY_API_KEY: poor.key } });
    const body = { model: 'sandbox/image', input: { prompt: 'x' } };
    expect((await poor.call('POST', '/v1/generate', body)).status).toBe(402);
    await expect
      .poll(async () => (await run()).out)
      .toMatch(new RegExp(`^REASON .*\ninsufficient_balance +${poor.key_id} +sandbox/image +1\n1 in all\\.\n$`));
    const { out } = await run('--by', 'day,budget', '--since', '2h', '--json');
    expect(JSON.parse(out)).toMatchObject({ object: 'refusals', total: 1, data: [{ budget: null, count: 1 }] });
    expect((await run('--until', '2h')).out).toBe('Nothing was refused.\n');
    expect(await run('--reason', 'odd')).toMatchObject({ code: 2, error: expect.stringContaining('monthly_limit') });
    expect(await run('--by', 'odd')).toMatchObject({
      code: expect.any(Number),
      error: expect.stringContaining('hour'),
    });
  });
});

describe('medley webhooks', () => {
  type Shown = { id: string; secret: string; events: string[]; filters: object; enabled: boolean; description: string };

  const endpointsOfListener = async () => {
    const { endpoints } = await person.json<{ endpoints: Shown[] }>(['webhooks']);
    return endpoints.filter(({ description }) => description === 'medley webhooks listen');
  };

  it('registers an endpoint, shows its secret once, and lists, changes and deletes it', async () => {
    const words = ['webhooks', 'create', `${receiver.url}/cli`, '--events', 'task.*,balance.low'];
    const created = await person.run([...words, '--metadata', 'team=web', '--description', 'Shop', '--disable']);
    expect(created).toMatchObject({
      code: 0,
      out: expect.stringMatching(/State +disabled: manual\n[^]*whsec_\S+\nThis/),
    });
    const [id = ''] = /whe_\w+/.exec(created.out) ?? [];
    const { endpoints } = await person.json<{ endpoints: Shown[] }>(['webhooks']);
    expect(endpoints).toMatchObject([{ id, description: 'Shop', filters: { metadata: { team: 'web' } } }]);
    expect(JSON.stringify(endpoints)).not.toContain('whsec_');
    expect(
      await person.json(['webhooks', 'change', id, '--enable', '--events', '*', '--models', 'sandbox/image,x/y']),
    ).toMatchObject({
      id,
      enabled: true,
      events: ['*'],
      description: 'Shop',
      filters: { models: ['sandbox/image', 'x/y'], metadata: {} },
    });
    expect((await person.run(['webhooks', 'list'])).out).toMatch(new RegExp(`${id} +enabled +\\* +http`));
    expect((await person.run(['webhooks', 'show', id])).out).toMatch(/Models +sandbox\/image, x\/y/);
    const { secret } = await person.json<Shown>(['webhooks', 'rotate', id]);
    expect(secret).toMatch(/^whsec_/);
    expect(created.out).not.toContain(secret);
    expect(await person.json(['webhooks', 'delete', id])).toEqual({ id, deleted: true });
    expect(await person.run(['webhooks', 'show', id])).toMatchObject({
      code: 1,
      error: expect.stringMatching(/no such/),
    });
    expect((await person.run(['webhooks'])).out).toBe('There are no endpoints.\n');
  });

  it('sends a test, ends with 1 if it does not arrive, and sends what failed again', async () => {
    const url = `${receiver.url}/again`;
    receiver.answer('/again', 500);
    const { id } = await person.json<Shown>(['webhooks', 'create', url, '--events', 'task.*', '--disable']);
    const failed = await person.run(['webhooks', 'test', id, 'task.failed']);
    expect(failed).toMatchObject({ code: 1, out: expect.stringContaining('Not delivered: the receiver answered 500') });
    await client.call('POST', '/v1/generate?wait=30', { model: 'sandbox/image', input: { prompt: 'x' } });
    const span = ['webhooks', 'replay', id, '--from', '1h'];
    expect(await person.json([...span, '--dry-run'])).toEqual({ id, events: 1, has_more: false, dry_run: true });
    expect(await person.run(span)).toMatchObject({ code: 1, error: expect.stringContaining('Enable it first') });
    receiver.answer('/again', 204);
    await person.json(['webhooks', 'change', id, '--enable']);
    const before = receiver.received.length;
    expect((await person.run(span)).out).toBe('Events that are sent again: 1\n');
    await expect.poll(() => receiver.received.slice(before).map(({ path }) => path)).toEqual(['/again']);
    expect((await person.run(['webhooks', 'test', id])).out).toContain('Delivered: the receiver answered 204');
    await person.json(['webhooks', 'delete', id]);
  });

  it.each([
    [['create', 'https://example.com/'], "required option '--events <types>'"],
    [['create', 'https://example.com/', '--events', '*', '--metadata', 'team'], '--metadata must be like team=web'],
    [['change', 'whe_x'], 'Name something to change'],
    [['change', 'whe_x', '--enable', '--disable'], 'opposites'],
    [['replay', 'whe_x', '--from', 'yesterday'], '--from must be a time'],
    [['test', 'whe_x', 'all'], 'The event must be one such as task.succeeded'],
    [['listen', '--port', '70000'], '--port must be a whole number'],
  ])('%j ends with 2, and says what is wrong', async (words, message) => {
    expect(await person.run(['webhooks', ...words])).toMatchObject({
      code: 2,
      error: expect.stringContaining(message),
    });
  });

  it('says which events there are when the service knows one by no such name', async () => {
    const { code, error } = await person.run([
      'webhooks',
      'create',
      'https://example.com/',
      '--events',
      'task.sucseeded',
    ]);
    expect([code, error]).toEqual([1, expect.stringContaining('Did you mean "task.succeeded"')]);
  });

  it('listen prints events while it runs, and leaves no endpoint behind', async () => {
    const listening = person.start(['webhooks', 'listen', '--events', 'task.*']);
    await expect.poll(() => listening.out.toString(), { timeout: 120_000 }).toContain('until Ctrl-C');
    const [, url = ''] = /to (http:\S+) until/.exec(listening.out.toString()) ?? [];
    await fetch(url, { method: 'POST', body: '"forged \u202E"' });
    await client.call('POST', '/v1/generate?wait=30', { model: 'sandbox/image', input: { prompt: 'x' } });
    await expect.poll(() => listening.out.toString(), { timeout: 120_000 }).toMatch(/ verified +task\.succeeded +dlv_/);
    listening.child.kill('SIGINT');
    expect(await listening.ended, listening.error).toBe(0);
    const printed = listening.out.toString();
    expect(printed).toMatch(/NOT VERIFIED[^\n]*forged \uFFFD/);
    expect(printed).toMatch(/\n2 received, 1 verified\n$/);
    expect(await endpointsOfListener()).toEqual([]);
  });

  it('listen ends after --count, with one object for a program', async () => {
    const listening = person.start(['webhooks', 'listen', '--count', '1', '--json']);
    await expect.poll(endpointsOfListener, { timeout: 120_000 }).toHaveLength(1);
    await person.run(['webhooks', 'test', (await endpointsOfListener())[0]?.id ?? '', 'model.retiring']);
    expect(await listening.ended, listening.error).toBe(0);
    const { received } = JSON.parse(listening.out.toString());
    expect(received).toMatchObject([{ verified: true, event: 'model.retiring', body: { type: 'model.retiring' } }]);
    expect(await endpointsOfListener()).toEqual([]);
  });
});

describe('medley chat', () => {
  it('prints an answer as it comes, and its cost', async () => {
    const { code, out, error } = await person.run(['chat', 'sandbox/chat', 'Hello there']);
    expect([code, out.length > 1, out.endsWith('\n')], error).toEqual([0, true, true]);
    expect(error).toMatch(/^sandbox\/chat: 0\.\d{6} USD, \d+ \+ \d+ tokens\n$/);
    const whole = await person.json<{ text: string; cost: object }>(['chat', '-m', 'sandbox/chat', 'Hello there']);
    expect(whole).toMatchObject({ model: 'sandbox/chat', finish_reason: 'stop', cost: { currency: 'USD' } });
    expect(`${whole.text}\n`).toBe(out);
  });

  it('takes the prompt from stdin, files behind it, and the first chat model unless one is named', async () => {
    const piped = await person.run(['chat', '-m', 'sandbox/chat'], { stdin: 'Hello there' });
    const named = await person.run(['chat', 'sandbox/chat', 'Hello there']);
    expect(piped.out).toBe(named.out);
    writeFileSync(at('more.txt'), 'and more');
    expect((await person.run(['chat', 'sandbox/chat', 'Look', '-f', 'more.txt'])).code).toBe(0);
    expect((await person.run(['chat', 'Just a prompt'])).code).toBe(0);
    expect(await person.run(['chat', 'sandbox/chat', '-f', 'none.txt'])).toMatchObject({ code: 2 });
    expect(await person.run(['chat', 'sandbox/chat'])).toMatchObject({ code: 2 });
  });

  it('an error of the service, a cut and a silent model end it with the reason', async () => {
    const refused = await person.run(['chat', 'sandbox/chat', '[[error 429]]']);
    expect([refused.code, refused.out]).toEqual([1, '']);
    expect((await person.run(['chat', 'sandbox/chat', '[[cut]] a longer text'])).code).not.toBe(0);
    expect((await person.run(['chat', 'no/model', 'x'])).error).toContain('no/model');
  });

  it('Ctrl-C ends an answer and says what came of it costs', async () => {
    const holds = () => test.app.db.query(`select from open_holds where account_id = $1`, [client.account_id]);
    await expect.poll(holds).toEqual([]); // of the calls before, which were cut off
    const running = person.start(['chat', 'sandbox/chat', '[[tokens 4000]] [[delay 30s]]']);
    await expect.poll(holds).not.toEqual([]);
    running.child.kill('SIGINT');
    expect(await running.ended).toBe(130);
    expect(running.error).toContain('Interrupted.');
  });

  it('ends quietly when nobody reads on', async () => {
    const running = person.start(['chat', 'sandbox/chat', '[[tokens 20000]]', '-q']);
    await once(running.child.stdout, 'data');
    running.child.stdout.destroy();
    expect([await running.ended, running.error]).toEqual([0, '']);
  });

  it('talks on a terminal, with the history, until /exit', async () => {
    const stdin = '/help\nMy name is Ada\n/model sandbox/chat\nAnd now?\n/clear\n/exit\n';
    const { code, out, error } = await person.run(['chat', 'sandbox/chat'], { stdin, env: as_terminal });
    expect(code, error).toBe(0);
    expect(out).toContain('another model');
    expect(error.match(/sandbox\/chat: 0\.\d+ USD, (\d+) \+/g)).toHaveLength(2);
    const [first = 0, second = 0] = [...error.matchAll(/USD, (\d+) \+/g)].map(([, count]) => Number(count));
    expect(second).toBeGreaterThan(first);
  });
});
