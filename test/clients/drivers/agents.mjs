/** Agents of the command line, each asked once per step; the word after the file is the agent. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { dirname, join } from 'node:path';
import { image_base64, key, models, run, tool_name, url } from './programme.mjs';

const here = import.meta.dirname;
const home = process.env.HOME;
const work = join(home, 'work');
const image = join(work, 'picture.png');
const mcp = [join(here, 'results_mcp.mjs'), tool_name];
const mcpServers = { results: { command: process.execPath, args: mcp, trust: true } };

/** Settings of Gemini CLI and of Qwen Code, which is made of it. */
const googleSettings = (selectedType) => ({
  mcpServers,
  privacy: { usageStatisticsEnabled: false },
  security: { auth: { selectedType }, folderTrust: { enabled: false } },
});

/** Less than what the programme allows for a step. */
const ask_ms_max = 150_000;

class AgentError extends Error {}

function write(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
}

/** Reads an event in the form of Claude Code, which Qwen Code shares; Qwen Code stays after the last. */
function readClaudeEvent(event) {
  if (event.type === 'stream_event') return { piece: event.event.delta?.text };
  if (event.type !== 'result') return {};
  if (event.is_error) return { error: event.result ?? event.error?.message ?? 'an error' };
  return { text: event.result, is_last: true };
}

const cline_program = '@cline/cli-linux-x64/bin/cline';

/** Cline with one of its providers. */
function cline(provider) {
  const env = {
    CLINE_SESSION_BACKEND_MODE: 'local', // no process that outlives it
    CLINE_GLOBAL_SETTINGS_PATH: join(home, 'global-settings.json'),
    CLINE_MCP_SETTINGS_PATH: join(home, 'mcp.json'),
  };
  return {
    program: cline_program,
    env,
    prepare() {
      const transport = { type: 'stdio', command: process.execPath, args: mcp };
      write(env.CLINE_GLOBAL_SETTINGS_PATH, { telemetryOptOut: true, autoUpdateEnabled: false });
      write(env.CLINE_MCP_SETTINGS_PATH, { mcpServers: { results: { transport } } });
      const args = ['auth', '-p', provider, '-k', key, '-m', models[0], '-b', `${url}/v1`];
      spawnSync(join(here, 'node_modules', cline_program), args, { env: { ...process.env, ...env } });
    },
    args: (model, prompt, has_image) => [
      '--json',
      '--provider',
      provider,
      '--model',
      model,
      has_image ? `${prompt} @${image}` : prompt,
    ],
    has_pieces: true,
    read({ type, event, finishReason, text }) {
      if (event?.type === 'content_start' && event.contentType === 'text') return { piece: event.text };
      if (type !== 'run_result') return {};
      return finishReason === 'error' ? { error: text || 'an error' } : { text, is_last: true };
    },
  };
}

/**
 * `program` and `args(model, prompt, has_image)` start it, `env` and `prepare` are what a person sets, `read` takes an
 * event of its output; `has_pieces` says whether the output comes in pieces, and `is_last` that no more is read;
 * `lacks_images`, that it sends none to these models.
 */
const agents = {
  codex: {
    program: '@openai/codex/bin/codex.js',
    prepare() {
      const server = `[mcp_servers.results]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify(mcp)}\n`;
      write(join(home, '.codex/config.toml'), `openai_base_url = "${url}/v1"\n[analytics]\nenabled = false\n${server}`);
    },
    env: { CODEX_API_KEY: key },
    args: (model, prompt, has_image) => [
      'exec',
      '--json',
      '--skip-git-repo-check',
      '-m',
      model,
      ...(has_image ? ['-i', image, '--', prompt] : [prompt]),
    ],
    read(event) {
      if (event.type === 'turn.failed') return { error: event.error.message };
      return event.item?.type === 'agent_message' ? { text: event.item.text } : {};
    },
  },
  claude: {
    program: '@anthropic-ai/claude-code-linux-x64/claude',
    env: {
      ANTHROPIC_API_KEY: key,
      ANTHROPIC_BASE_URL: url,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    },
    prepare: () => write(join(home, 'mcp.json'), { mcpServers }),
    args: (model) => [
      '-p',
      '--model',
      model,
      '--verbose',
      '--include-partial-messages',
      '--input-format',
      'stream-json',
      '--output-format',
      'stream-json',
      '--mcp-config',
      join(home, 'mcp.json'),
      '--allowedTools',
      `mcp__results__${tool_name}`,
    ],
    input(prompt, base64) {
      const source = { type: 'base64', media_type: 'image/png', data: base64 };
      const content = [...(base64 ? [{ type: 'image', source }] : []), { type: 'text', text: prompt }];
      return `${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`;
    },
    has_pieces: true,
    read: readClaudeEvent,
  },
  gemini: {
    program: '@google/gemini-cli/bundle/gemini.js',
    prepare: () => write(join(home, '.gemini/settings.json'), googleSettings('gemini-api-key')),
    env: { GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: url },
    args: (model, prompt, has_image) => [
      '-m',
      model,
      '--yolo',
      '--output-format',
      'stream-json',
      '-p',
      has_image ? `${prompt} @picture.png` : prompt,
    ],
    has_pieces: true,
    read(event) {
      if (event.type === 'message' && event.role === 'assistant') return { piece: event.content };
      return event.type === 'result' && event.status !== 'success' ? { error: event.error?.message ?? 'an error' } : {};
    },
  },
  qwen: {
    program: '@qwen-code/qwen-code/cli.js',
    prepare: () => write(join(home, '.qwen/settings.json'), googleSettings('openai')),
    env: { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${url}/v1` },
    args: (model, prompt, has_image) => [
      '-m',
      model,
      '--yolo',
      '--output-format',
      'stream-json',
      '--include-partial-messages',
      '-p',
      has_image ? `${prompt} @picture.png` : prompt,
    ],
    has_pieces: true,
    lacks_images: true, // it sends images to models alone whose names it knows
    read: readClaudeEvent,
  },
  cline_native: cline('openai-native'),
  cline_compatible: cline('openai-compatible'),
  opencode: {
    program: 'opencode-linux-x64/bin/opencode',
    prepare() {
      const modalities = { input: ['text', 'image'], output: ['text'] };
      const provider = {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${url}/v1`, apiKey: key },
        models: Object.fromEntries(models.map((model) => [model, { attachment: true, modalities }])),
      };
      write(join(home, '.config/opencode/opencode.json'), {
        autoupdate: false,
        share: 'disabled',
        provider: { medley: provider },
        mcp: { results: { type: 'local', command: [process.execPath, ...mcp] } },
      });
    },
    env: { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
    args: (model, prompt, has_image) => [
      'run',
      '--format',
      'json',
      '-m',
      `medley/${model}`,
      prompt,
      ...(has_image ? ['-f', image] : []),
    ],
    read(event) {
      if (event.type === 'error') return { error: event.error?.data?.message ?? event.error?.name ?? 'an error' };
      return event.type === 'text' ? { text: event.part.text } : {};
    },
  },
};
const agent = agents[process.argv[2]];

/** Becomes the agent, beside a process of its group that ends the group when this driver is gone, however it went. */
const guarded = '(read -r _ <&3; kill -9 -$$) >/dev/null 2>&1 & exec "$@" 3<&-';

/** Starts the agent, and yields what its events say; it is stopped when the reader leaves. */
async function* ask(model, prompt, base64) {
  const program = join(here, 'node_modules', agent.program);
  const words_before = program.endsWith('.js') ? [process.execPath, program] : [program];
  const args = [...words_before, ...agent.args(model, prompt, base64 !== undefined)];
  const child = spawn('/bin/sh', ['-c', guarded, 'sh', ...args], {
    cwd: work,
    env: { ...process.env, ...agent.env },
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    detached: true, // some start themselves again: all are killed together
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const timer = setTimeout(() => killGroup(child), ask_ms_max);
  child.stdin.end(agent.input?.(prompt, base64) ?? '');
  let words = '';
  child.stderr.on('data', (chunk) => (words = `${words}${String(chunk)}`.slice(-500)));
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      if (!line.startsWith('{')) continue;
      const { error, ...more } = agent.read(JSON.parse(line));
      if (error) throw new AgentError(error);
      yield more;
      if (more.is_last) return;
    }
    const code = await ended;
    if (code !== 0) throw new AgentError(`it ended with ${code}: ${words}`);
  } finally {
    clearTimeout(timer);
    killGroup(child);
    await ended;
  }
}

function killGroup({ pid }) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

async function textOf(model, prompt, base64) {
  let pieces = '';
  let last;
  for await (const { piece, text } of ask(model, prompt, base64)) {
    pieces += piece ?? '';
    last = text ?? last;
  }
  return last ?? pieces;
}

async function* piecesOf(model, prompt) {
  for await (const { piece } of ask(model, prompt)) yield piece;
}

mkdirSync(work, { recursive: true });
writeFileSync(image, Buffer.from(image_base64, 'base64'));
agent.prepare(models);

await run({
  plain: textOf,
  ...(agent.has_pieces && { stream: piecesOf }),
  tools: textOf,
  ...(!agent.lacks_images && { image: textOf }),
});
