import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandsOf, medleySoon } from './medley.ts';

const litellm = fileURLToPath(new URL('../catalog/lists/litellm.json', import.meta.url));

let folder = '';
let url = '';
let authorization: string | undefined;
const server = createServer((request, response) => {
  authorization = request.headers.authorization;
  const data = [{ id: 'llama3.2:1b' }, { id: 'embed-small' }];
  response.writeHead(request.url === '/v1/models' ? 200 : 500).end(JSON.stringify({ object: 'list', data }));
});
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'medley-lists-'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const commands = (env: Record<string, string> = {}) =>
  commandsOf({ MEDLEY_DATA: join(folder, 'data'), ...env }, medleySoon);

describe('medley provider add and models import', () => {
  it('make a configuration that works out of nothing: a server of one’s own, and its models', async () => {
    const file = join(folder, 'own.yaml');
    const add = ['provider', 'add', 'ollama', '--base-url', url, '--into', file];
    expect((await commands().text(...add)).out).toContain(`ollama is in ${file}.`);
    expect(await commands().fails(1, ...add)).toContain(`${file} has a provider ollama already.`);
    const words = ['models', 'import', 'openai-compatible', '--provider', 'ollama', '--into', file];
    const shown = await commands().text(...words);
    expect(shown.out).toContain('+ ollama/llama3.2:1b');
    expect(shown.out).toContain('2 models without a price, which would be free');
    expect(shown.out).toContain('Nothing is written.');
    expect(readFileSync(file, 'utf8')).not.toContain('models:');
    expect((await commands().text(...words, '--write')).out).toContain(`${file} is written.`);
    const listed = await commands({ MEDLEY_CONFIG: file }).text('models', 'show', 'ollama/llama3.2:1b');
    expect(listed.out).toContain('Route ollama: ollama, llama3.2:1b: usable');
  });

  it('offer the shipped models of a provider that comes with Medley, beside those that are offered already', async () => {
    const file = join(folder, 'shipped.yaml');
    writeFileSync(file, 'version: 1 # ours\n');
    const env = { STABILITY_API_KEY: 'sk-one', IDEOGRAM_API_KEY: 'two', MEDLEY_CONFIG: file };
    const { out } = await commands(env).text('provider', 'add', 'stability', '--into', file);
    expect(out).toContain('Its key belongs in STABILITY_API_KEY.\n7 of its models are offered.');
    await commands(env).text('provider', 'add', 'ideogram', '--into', file);
    await commands(env).text('provider', 'add', 'stability', '--as', 'mine', '--into', file);
    const text = readFileSync(file, 'utf8');
    expect(text).toContain('version: 1 # ours\n');
    expect(text).toMatch(/catalog:\s+default: \[ ?stability, ideogram ?\]/);
    const { out: listed } = await commands(env).text('models', 'show', 'stability/stable-image-core');
    expect(listed).toContain('Route stability: stability, core: usable');
    expect((await commands(env).text('models')).out).toContain('ideogram/ideogram-3-remix');
  });

  it('take prices, with what you charge above them, and send the key to the provider alone', async () => {
    const file = join(folder, 'groq.yaml');
    const env = { GROQ_API_KEY: 'gsk-secret' };
    await commands(env).text('provider', 'add', 'groq', '--base-url', url, '--into', file);
    const words = ['models', 'import', 'litellm', litellm, '--from', 'groq', '--markup', '20%', '--into', file];
    const { out } = await commands(env).text(...words, '--write');
    expect(out).toContain('+ groq/openai/gpt-oss-120b: input_token 0.18; cached_input_token 0.09; output_token 0.72');
    expect(out).toContain('1 of other kinds left out.');
    await commands(env).text('models', 'import', 'openai-compatible', '--provider', 'groq', '--into', file);
    expect(authorization).toBe('Bearer gsk-secret');
    await commands(env).text(
      'models',
      'import',
      'openai-compatible',
      `${url}/models`,
      '--provider',
      'groq',
      '--into',
      file,
    );
    expect(authorization).toBeUndefined();
    expect(readFileSync(file, 'utf8')).not.toContain('gsk-secret');
  });

  it('take one of two models of a list that would have the same id, and name the other', async () => {
    const file = join(folder, 'perplexity.yaml');
    const list = join(folder, 'perplexity.json');
    const entry = (mode: string, price: number) => ({
      litellm_provider: 'perplexity',
      mode,
      input_cost_per_token: price,
      output_cost_per_token: price,
    });
    const models = { 'perplexity/sonar': entry('chat', 1e-6), 'perplexity/perplexity/sonar': entry('responses', 2e-6) };
    writeFileSync(list, JSON.stringify(models));
    const words = ['models', 'import', 'litellm', list, '--from', 'perplexity', '--into', file];
    const both = await commands().text(...words);
    expect(both.out).toContain('+ perplexity/sonar: input_token 1; output_token 1\n');
    expect(both.out).toContain('  perplexity/sonar would be perplexity/sonar too, as sonar is: it is left out.');
    const { out } = await commands().text(...words, '--only', '*/*', '--write');
    expect(out).toContain('+ perplexity/sonar: input_token 2; output_token 2\n1 added');
    expect(readFileSync(file, 'utf8')).toContain('upstream_model: perplexity/sonar');
    expect(readFileSync(file, 'utf8')).toContain(
      'options: { max_tokens_field: max_tokens, developer_role: false, responses: always',
    );
  });

  it.each([
    [['litellm', litellm], 'The list has 4 providers: say by --from which one'],
    [['litellm', litellm, '--from', 'acme'], 'The list has no provider acme. It has:'],
    [['litellm', litellm, '--from', 'groq', '--markup', 'much'], '--markup must be a percentage such as 20%'],
    [['openai-compatible'], 'Say by --provider which provider of medley.yaml runs the models.'],
    [['openrouter', litellm], `${litellm} has no models in the form of openrouter.`],
    [['openrouter', join(tmpdir(), 'medley-no-such-list.json')], 'could not be read: ENOENT'],
    [['openrouter', 'http://127.0.0.1:9/models'], 'could not be read: '],
    [['litellm', litellm, '--from', 'groq', '--provider', 'nobody'], 'There is no provider nobody in'],
    [['litellm', litellm, '--from', 'groq', '--only', 'x*'], 'has no model that was asked for'],
  ])('say what is wrong: %j', async (words, message) => {
    const file = join(folder, 'none.yaml');
    const provider = words.includes('--provider') || words[0] !== 'litellm' ? [] : ['--provider', 'groq'];
    const result = await medleySoon(['models', 'import', ...words, ...provider, '--into', file, '--write'], {});
    expect(result.code).not.toBe(0);
    expect(result.error).toContain(message);
    expect(existsSync(file)).toBe(false);
  });

  it('leave a file with a mistake, or one that is no YAML, as it is', async () => {
    const file = join(folder, 'wrong.yaml');
    const words = ['models', 'import', 'litellm', litellm, '--from', 'groq', '--into', file, '--write'];
    for (const [text, message] of [
      [
        'version: 1\nlimits: { chat_per_minute: many }\n',
        `${file} stays as it is, since it would have mistakes:\n${file}:2:`,
      ],
      ['version: [', `${file} is no YAML`],
    ] as const) {
      writeFileSync(file, text);
      expect((await medleySoon(words, {})).error).toContain(message);
      expect(readFileSync(file, 'utf8')).toBe(text);
    }
  });
});

describe('medley models check', () => {
  it('compares costs and ends with a list', async () => {
    const file = join(folder, 'cheap.yaml');
    writeFileSync(
      file,
      'version: 1\nproviders: { openai: { adapter: openai, api_key: env:OPENAI_API_KEY } }\nmodels:\n' +
        '  - { id: o/five, kind: chat, retires: 2026-12-11, price: [{ unit: output_token, amount: "1" }], routes: [{ provider: openai, upstream_model: gpt-5,\n' +
        '      cost: [{ unit: input_token, per: 1000000, amount: "1.25" }, { unit: output_token, per: 1000, amount: "0.02" }] }] }\n',
    );
    const result = await medleySoon(['models', 'check', 'litellm', litellm], { MEDLEY_CONFIG: file });
    expect(result.code).toBe(1);
    expect(result.out.split('\n').slice(0, 3)).toEqual([
      'o/five (openai) output_token: 20 here, 10 in the list',
      'o/five (openai) cached_input_token: nothing here, 0.125 in the list',
      '1 route compared, 2 differences.',
    ]);
  });
});
