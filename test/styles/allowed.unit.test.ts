import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { ApiError } from '../../src/errors.ts';
import { allowed_betas, withheld_betas } from '../../src/styles/messages/betas.ts';
import { messages } from '../../src/styles/messages/codec.ts';
import { hasLongCaches, withoutLongCaches } from '../../src/styles/long-caches.ts';
import { chatOptionProblems } from '../../src/providers/http/chat-options.ts';
import {
  allowedBetas,
  allowedBody,
  ignoredFields,
  pass_names,
  readAllowance,
  refuseFields,
} from '../../src/styles/allowed.ts';
import { membersNamed, type CallerStyle } from './by-name.ts';

const hi = { role: 'user', content: 'Hi' };
const body = (fields: JsonObject): JsonObject => ({ model: 'm', messages: [hi], ...fields });
const userTurn = (...content: JsonObject[]): JsonObject => body({ messages: [hi, { role: 'user', content }] });

/** The style that has such a member; most of them have several. */
function styleOf(fields: JsonObject): CallerStyle {
  const has = (style: CallerStyle) =>
    Object.keys(fields).every((field) => membersNamed(style).sdk.has(field) || field === 'messages');
  return (['completions', 'messages', 'responses'] as const).find(has) ?? 'completions';
}

function allow(fields: JsonObject, options: JsonObject = {}): JsonObject {
  return allowedBody(membersNamed(styleOf(fields)), fields, readAllowance(options).allowance);
}

function refusedField(fields: JsonObject, options: JsonObject = {}): unknown {
  try {
    allow(fields, options);
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [error.status, error.extras.code, error.extras.param, error.message.split(' ')[0]];
  }
}

const refused: [rule: string, JsonObject, param: string][] = [
  ['service_tier', body({ service_tier: 'priority' }), 'service_tier'],
  ['service_tier', body({ service_tier: 'scale' }), 'service_tier'],
  ['speed', body({ speed: 'fast' }), 'speed'],
  ['inference_geo', body({ inference_geo: 'us' }), 'inference_geo'],
  ['web_search_options', body({ web_search_options: {} }), 'web_search_options'],
  ['search_parameters', body({ search_parameters: { mode: 'on' } }), 'search_parameters'],
  ['enable_search', body({ enable_search: true }), 'enable_search'],
  ['data_sources', body({ data_sources: [] }), 'data_sources'],
  ['fallbacks', body({ fallbacks: [{ model: 'dear' }] }), 'fallbacks'],
  ['preset', body({ preset: 'x' }), 'preset'],
  ['billing_policy', body({ billing_policy: 'x' }), 'billing_policy'],
  ['background', { model: 'm', input: 'Hi', background: true }, 'background'],
  ['container', body({ container: 'cntr_1' }), 'container'],
  ['container', body({ container: { skills: [] } }), 'container'],
  ['previous_response_id', { model: 'm', input: 'Hi', previous_response_id: 'resp_1' }, 'previous_response_id'],
  [
    'prompt_cache_options',
    body({ prompt_cache_options: { comparison_response_id: 'resp_1' } }),
    'prompt_cache_options',
  ],
  ['modalities', body({ modalities: ['text', 'audio'] }), 'modalities'],
  ['modalities', body({ modalities: ['image'] }), 'modalities'],
  ['tools', body({ tools: [{ type: 'function' }, { type: 'web_search_20260209', name: 'w' }] }), 'tools[1].type'],
  ['tools', body({ tools: [{ type: 'code_execution_20250825', name: 'c' }] }), 'tools[0].type'],
  ['tools', body({ tools: [{ type: 'what_comes_next' }] }), 'tools[0].type'],
  ['file_id', userTurn({ type: 'file', file: { file_id: 'file-1' } }), 'messages[1].content[0].file.file_id'],
  [
    'file_id',
    userTurn({ type: 'image', source: { type: 'file', file_id: 'f' } }),
    'messages[1].content[0].source.file_id',
  ],
  ['file_id', userTurn({ type: 'container_upload', file_id: 'f' }), 'messages[1].content[0].file_id'],
  [
    'file_id',
    userTurn({ type: 'tool_result', content: [{ type: 'document', source: { type: 'file', file_id: 'f' } }] }),
    'messages[1].content[0].content[0].source.file_id',
  ],
  [
    'file_id',
    userTurn({ type: 'document', source: { type: 'content', content: [{ type: 'image', source: { file_id: 'f' } }] } }),
    'messages[1].content[0].source.content[0].source.file_id',
  ],
  ['file_id', body({ messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] }), 'messages[0].audio.id'],
  [
    'tools',
    userTurn({ type: 'tool_addition', tool: { type: 'tool_definition', definition: { type: 'web_search_20260318' } } }),
    'messages[1].content[0].tool.definition.type',
  ],
  [
    'tools',
    userTurn({
      type: 'compaction',
      content: 'x',
      tool_changes: [
        { type: 'tool_removal', tool: { type: 'tool_reference', name: 'f' } },
        { type: 'tool_addition', tool: { type: 'tool_definition', definition: { type: 'code_execution_20260521' } } },
      ],
    }),
    'messages[1].content[0].tool_changes[1].tool.definition.type',
  ],
  ['input_audio', userTurn({ type: 'input_audio', input_audio: { data: 'AA' } }), 'messages[1].content[0].input_audio'],
];

describe('a request field', () => {
  it.each(refused)('is refused by the rule %s: %j', (rule, fields, param) => {
    expect(refusedField(fields)).toEqual([400, 'unsupported_field', param, param]);
    expect(allow(fields, { pass: [rule] })).toBe(fields);
    expect(refusedField(fields, { pass: pass_names.filter((name) => name !== rule) })).toBeDefined();
  });

  it.each([
    body({ service_tier: 'auto' }),
    body({ service_tier: 'flex' }),
    body({ service_tier: 'standard_only', speed: 'standard', inference_geo: 'global' }),
    body({ service_tier: null, web_search_options: null, modalities: null, store: false }),
    body({ container: null, thinking: null }),
    body({ modalities: ['text'], prompt_cache_options: { mode: 'explicit' } }),
    { model: 'm', input: 'Hi', background: false },
    body({ prediction: { type: 'content', content: 'x' } }),
    body({ context_management: { edits: [] }, mcp_servers: [] }),
    body({ prompt_cache_retention: '24h', logprobs: true, verbosity: 'low' }),
    body({ tools: [{ type: 'function' }, { name: 'no type' }, { type: 'custom' }, { type: 'bash_20250124' }] }),
    body({
      tools: [{ type: 'web_fetch_20260209' }, { type: 'tool_search_tool_regex' }, { type: 'computer_20251124' }],
    }),
    userTurn(
      { type: 'image', source: { type: 'url', url: 'https://x.y' } },
      { type: 'file', file: { file_data: 'data:' } },
    ),
    userTurn({ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '5m' } }),
    userTurn(
      { type: 'tool_addition', tool: { type: 'tool_definition', definition: { name: 'f', input_schema: {} } } },
      { type: 'tool_addition', tool: { type: 'tool_reference', name: 'f' } },
    ),
  ])('goes on in the same object when its tokens pay for it: %j', (fields) => {
    expect(allow(fields)).toBe(fields);
  });
});

describe('a request', () => {
  const unknown = {
    api_base: 'http://169.254.169.254/',
    api_key: 'sk-of-another',
    mock_response: 'x',
    extra_headers: { authorization: 'x' },
    chat_template: '{{x}}',
    chat_template_kwargs: {},
    priority: 1,
    transforms: [],
    constructor: 1,
    enable_search: false,
    unheard_of: { file_id: 1 },
  };

  it.each(['completions', 'messages', 'responses', 'embeddings'] as const)(
    'of %s passes on only fields that an SDK of its style defines',
    (style) => {
      const { allowance } = readAllowance({});
      const fields = { model: 'm', ...unknown };
      expect(allowedBody(membersNamed(style), fields, allowance)).toEqual({ model: 'm' });
      expect(ignoredFields(membersNamed(style), { ...fields, metadata: null }, [allowance])).toEqual(
        Object.keys(unknown),
      );
      const open = readAllowance({ pass_fields: Object.keys(unknown) }).allowance;
      expect(allowedBody(membersNamed(style), fields, open)).toBe(fields);
      expect(ignoredFields(membersNamed(style), fields, [allowance, open])).toEqual([]);
    },
  );

  it('passes on a wish for a route or a plugin only where the route lets it pass', () => {
    const wishes = { models: ['dear/model'], provider: { order: ['dear'] }, plugins: [{ id: 'web' }] };
    const request = body(wishes);
    expect(allow(request)).toEqual(body({}));
    for (const rule of ['models', 'provider', 'plugins'] as const) {
      expect(allow(request, { pass: [rule] })).toEqual(body({ [rule]: wishes[rule] }));
    }
    const { allowance } = readAllowance({});
    expect(ignoredFields(membersNamed('completions'), request, [allowance])).toEqual(Object.keys(wishes));
    for (const [name, value] of Object.entries(wishes)) {
      const other = { model: 'm', [name]: value };
      expect(() => allowedBody(membersNamed('messages'), other, allowance)).toThrow(name);
    }
  });

  it("is refused when it names the operator's account or runs more than one model", () => {
    const { allowance } = readAllowance({});
    for (const field of ['user_profile_id', 'workspace_id', 'access_programs', 'multi_agent'])
      expect(() => allowedBody(membersNamed('responses'), { model: 'm', [field]: 'x' }, allowance)).toThrow(field);
    expect(
      allowedBody(membersNamed('messages'), { model: 'm', diagnostics: { previous_message_id: 'msg_1' } }, allowance),
    ).toEqual({
      model: 'm',
    });
  });

  it('passes on only betas that cost nothing but tokens, and one for long prompts when these have prices', () => {
    const { betas } = messages.caller;
    if (!betas) throw new Error('the style has betas');
    const { allowance } = readAllowance({});
    const header = 'claude-code-20250219, context-1m-2025-08-07,fast-mode-2026-02-01,,unheard-of, effort-2025-11-24';
    expect(allowedBetas(betas, header, allowance, false)).toEqual(['claude-code-20250219', 'effort-2025-11-24']);
    expect(allowedBetas(betas, header, allowance, true)).toContain('context-1m-2025-08-07');
    const open = readAllowance({ pass_betas: ['unheard-of'] }).allowance;
    expect(allowedBetas(betas, header, open, false)).toEqual([
      'claude-code-20250219',
      'unheard-of',
      'effort-2025-11-24',
    ]);
  });
});

describe('the lists of permitted names are those of the SDKs', () => {
  const read = (path: string) => readFileSync(new URL(`../node_modules/${path}`, import.meta.url), 'utf8');

  /** Members of an interface of a type definition: those that stand at its own depth. */
  function membersOf(path: string, name: string): string[] {
    const text = read(path);
    const start = text.indexOf(`export interface ${name} {\n`);
    expect(start).toBeGreaterThan(-1);
    const members = text.slice(start, text.indexOf('\n}', start));
    return [...members.matchAll(/^ {4}(\w+)\??:/gm)].map(([, member = '']) => member);
  }

  it.each<[style: CallerStyle | 'texts' | 'embeddings', paths: string[], name: string]>([
    ['completions', ['resources/chat/completions/completions.d.ts'], 'ChatCompletionCreateParamsBase'],
    [
      'responses',
      ['resources/responses/responses.d.ts', 'resources/beta/responses/responses.d.ts'],
      'ResponseCreateParamsBase',
    ],
    ['texts', ['resources/completions.d.ts'], 'CompletionCreateParamsBase'],
    ['embeddings', ['resources/embeddings.d.ts'], 'EmbeddingCreateParams'],
    [
      'messages',
      ['resources/messages/messages.d.ts', 'resources/beta/messages/messages.d.ts'],
      'MessageCreateParamsBase',
    ],
  ])('for the fields of %s', (style, paths, name) => {
    const sdks = style === 'messages' ? ['anthropic-0', 'anthropic-1'] : ['openai-6', 'openai-7'];
    const defined = new Set(sdks.flatMap((sdk) => paths.flatMap((path) => membersOf(`${sdk}/${path}`, name))));
    defined.delete('betas'); // SDKs send them as a header
    expect([...membersNamed(style).sdk].toSorted()).toEqual([...defined].toSorted());
  });

  it('for the betas', () => {
    const defined = ['anthropic-0', 'anthropic-1'].flatMap((sdk) => {
      const [, union = ''] = /export type AnthropicBeta = ([^;]*);/.exec(read(`${sdk}/resources/beta/beta.d.ts`)) ?? [];
      return [...union.matchAll(/'([^']+)'/g)].map(([, beta = '']) => beta);
    });
    expect(defined.length).toBeGreaterThan(50);
    expect(defined.filter((beta) => !allowed_betas.has(beta) && !withheld_betas.has(beta))).toEqual([]);
    expect([...withheld_betas].filter((beta) => allowed_betas.has(beta) || !defined.includes(beta))).toEqual([]);
  });
});

describe('a request loses without an error', () => {
  it('store, and the metadata that upstreams accept only with it', () => {
    expect(allow(body({ store: true, metadata: { a: 'b' } }))).toEqual(body({}));
    const request = body({ store: true, metadata: { a: 'b' } });
    expect(allow(request, { pass: ['store'] })).toBe(request);
  });

  it('an hour in the cache, which becomes five minutes wherever the mark stands', () => {
    const mark = (ttl?: string) => ({ cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } });
    const marked = (ttl?: string): JsonObject => ({
      model: 'm',
      ...mark(ttl),
      system: [{ type: 'text', text: 'a', ...mark(ttl) }],
      tools: [{ name: 'f', input_schema: { cache_control: { ttl: '1h' } }, ...mark(ttl) }],
      messages: [
        { role: 'user', content: [{ type: 'tool_result', content: [{ type: 'text', text: 'b', ...mark(ttl) }] }] },
        {
          role: 'user',
          content: [
            { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'c', ...mark(ttl) }] } },
            { type: 'tool_addition', tool: { type: 'tool_definition', definition: { name: 'g', ...mark(ttl) } } },
            { type: 'compaction', tool_changes: [{ type: 'tool_removal', ...mark(ttl) }] },
          ],
        },
        { role: 'user', content: 'as it is' },
      ],
    });
    expect(withoutLongCaches(marked('1h'))).toEqual(marked());
    expect([hasLongCaches(marked('1h')), hasLongCaches(marked())]).toEqual([true, false]);
    const short = marked();
    expect(withoutLongCaches(short)).toBe(short);
  });

  it.each<[string, JsonObject]>([
    ['a document', { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'a', MARK: 1 }] } }],
    ['references to tools', { type: 'x', content: { tool_references: [{ type: 'tool_reference', MARK: 1 }] } }],
    ['the contents of a server tool', { type: 'x', content: { type: 'y', content: [{ type: 'z', MARK: 1 }] } }],
  ])('an hour in the cache of %s, which becomes five minutes', (_, block) => {
    const marked = (ttl: object): JsonObject =>
      JSON.parse(JSON.stringify(block).replace('"MARK":1', `"cache_control":${JSON.stringify(ttl)}`));
    const long: JsonObject = { messages: [{ role: 'user', content: [marked({ type: 'ephemeral', ttl: '1h' })] }] };
    expect(withoutLongCaches(long)).toEqual({ messages: [{ role: 'user', content: [marked({ type: 'ephemeral' })] }] });
  });
});

it('a route may refuse further fields', () => {
  const { allowance } = readAllowance({ refuse: ['logprobs', 'mcp_servers'] });
  expect(() => refuseFields(body({ logprobs: true }), allowance)).toThrow('logprobs is not offered with this model.');
  expect(() => refuseFields(body({ logprobs: null, top_logprobs: 2 }), allowance)).not.toThrow();
});

it('the options of a route that permit fields are validated', () => {
  expect(chatOptionProblems({ pass: ['service_tier', 'tools'], refuse: ['logprobs'] })).toEqual([]);
  expect(chatOptionProblems({ pass: 'tools' })).toMatchObject([{ field: 'pass', message: 'must be a list of names' }]);
  expect(chatOptionProblems({ refuse: [1] })).toMatchObject([{ field: 'refuse' }]);
  expect(chatOptionProblems({ pass: ['toools'] })).toMatchObject([
    { field: 'pass', message: '"toools" is no rule', known_names: pass_names },
  ]);
});
