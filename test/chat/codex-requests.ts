/**
 * Requests of coding agents. Those of Codex 0.169.0 are as it sends them without a setting but the base URL, the key and the model (recorded on loopback),
 * with shorter texts: for a model that it does not know, and for two that it knows.
 */

type Item = Record<string, unknown>;

const closed = (properties: object, ...required: string[]) => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
});
const text = { type: 'string', description: 'Text.' };
const command = {
  type: 'function',
  name: 'exec_command',
  description: 'Runs a command in a PTY.',
  strict: false,
  parameters: closed({ cmd: text, login: { type: 'boolean' }, max_output_tokens: { type: 'number' } }, 'cmd'),
};
const plan = {
  type: 'function',
  name: 'get_goal',
  description: 'Get the current goal.',
  strict: false,
  parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
};
const agents = {
  type: 'namespace',
  name: 'collaboration',
  description: 'Tools for spawning and managing sub-agents.',
  tools: [
    {
      type: 'function',
      name: 'list_agents',
      description: 'List agents.',
      strict: false,
      parameters: closed({ path_prefix: text }),
    },
  ],
};
const grammar = (definition: string) => ({ type: 'grammar', syntax: 'lark', definition });
const patch = {
  type: 'custom',
  name: 'apply_patch',
  description: 'Edits files. This is a FREEFORM tool, so do not wrap the patch in JSON.',
  format: grammar('start: begin_patch hunk+ end_patch'),
};
const search = {
  type: 'tool_search',
  execution: 'client',
  description: '# Tool discovery',
  parameters: closed({ query: text, limit: { type: 'number' } }, 'query'),
};
const web = { type: 'web_search', external_web_access: true, search_content_types: ['text', 'image'] };
const code = {
  type: 'custom',
  name: 'exec',
  description: 'Run JavaScript code to orchestrate tool calls.',
  format: grammar('start: /(.|\\n)+/'),
};

const message = (role: string, content: string): Item => ({
  type: 'message',
  id: `msg_${role}`,
  role,
  content: [{ type: 'input_text', text: content }],
});
const input = [
  message('developer', 'You are a coding agent running in the Codex CLI.'),
  message('user', '<environment_context>\n  <cwd>/work</cwd>\n</environment_context>'),
  message('user', 'Mend the test.'),
];
const common = {
  tool_choice: 'auto',
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: '01a2147a-43cc-7790-aad1-b9f3880472cd',
  client_metadata: { turn_id: '01a2147a-43e7-7ab3-80e7-c12d2a7565a5' },
};

/** The tool that a model edits with, as Codex knows it. */
export type Editor = { name: string; namespace?: string };

export type Client = { body: Item & { input: Item[] }; editor: Editor };

export const unknown_model: Client = {
  body: {
    ...common,
    input,
    parallel_tool_calls: true,
    reasoning: { summary: 'auto' },
    tools: [command, agents, plan, patch, { type: 'web_search', external_web_access: true }],
  },
  editor: { name: 'apply_patch' },
};

export const known_model: Client = {
  body: {
    ...common,
    input,
    parallel_tool_calls: true,
    reasoning: { effort: 'medium' },
    text: { verbosity: 'low' },
    tools: [command, patch, plan, search, web],
  },
  editor: { name: 'apply_patch' },
};

export const newest_model: Client = {
  body: {
    ...common,
    input: [
      {
        type: 'additional_tools',
        id: 'at_1',
        role: 'developer',
        tools: [{ type: 'namespace', name: 'functions', description: '', tools: [code, command] }, agents],
      },
      ...input,
    ],
    parallel_tool_calls: false,
    reasoning: { effort: 'medium', context: 'all_turns' },
    text: { verbosity: 'low' },
  },
  editor: { name: 'exec', namespace: 'functions' },
};

/** Cline with its provider "OpenAI": all tools are strict functions, and what the model thought comes back without its seal. */
export const cline: Item & { input: Item[] } = {
  instructions: 'You are Cline, a software engineer.',
  input: [{ role: 'user', content: [{ type: 'input_text', text: '<task>\nMend the test.\n</task>' }] }],
  stream: true,
  tools: [
    {
      type: 'function',
      name: 'read_file',
      description: 'Read a file.',
      parameters: closed({ path: text }, 'path'),
      strict: true,
    },
  ],
  reasoning: { effort: 'medium', summary: 'auto' },
};
