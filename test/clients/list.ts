/** A client of the suite: what is installed, the driver and its word, and all that a person sets. */
export type Client = {
  name: string;
  from: 'npm' | 'PyPI';
  /** Pinned; the first one's version is the client's. */
  packages: readonly string[];
  driver: string;
  word: string;
  setting: string;
  /** It asks more than it is asked to: titles, summaries. */
  is_agent?: boolean;
};

const npm = (name: string, driver: string, word: string, setting: string, ...packages: string[]): Client => ({
  name,
  from: 'npm',
  packages,
  driver: `${driver}.mjs`,
  word,
  setting,
});

const agent = (name: string, word: string, setting: string, ...packages: string[]): Client => ({
  ...npm(name, 'agents', word, setting, ...packages),
  is_agent: true,
});

const pypi = (name: string, driver: string, word: string, setting: string, ...packages: string[]): Client => ({
  name,
  from: 'PyPI',
  packages,
  driver: `${driver}.py`,
  word,
  setting,
});

const base = '`baseURL: …/v1`, `apiKey`';
const bare = '`baseURL: …`, `apiKey`';

const google = '`httpOptions.baseUrl: …`, `apiKey`';
const google_py = '`http_options.base_url=…`, `api_key`';

const ai5 = [
  'ai@5.0.277',
  '@ai-sdk/openai@2.0.130',
  '@ai-sdk/anthropic@2.0.112',
  '@ai-sdk/openai-compatible@1.0.61',
  '@ai-sdk/google@2.0.108',
];
const ai6 = [
  'ai@6.0.325',
  '@ai-sdk/openai@3.0.141',
  '@ai-sdk/anthropic@3.0.140',
  '@ai-sdk/openai-compatible@2.0.92',
  '@ai-sdk/google@3.0.141',
];
const ai7 = [
  'ai@7.0.173',
  '@ai-sdk/openai@4.0.118',
  '@ai-sdk/anthropic@4.0.105',
  '@ai-sdk/openai-compatible@3.0.92',
  '@ai-sdk/google@4.0.121',
];
const aiSdk = (version: number, packages: string[]) => [
  npm(`AI SDK ${version}, \`openai(model)\``, 'ai', 'openai', base, ...packages),
  npm(`AI SDK ${version}, \`openai.chat(model)\``, 'ai', 'openai.chat', base, ...packages),
  npm(`AI SDK ${version}, openai-compatible`, 'ai', 'openai-compatible', base, ...packages),
  npm(`AI SDK ${version}, anthropic`, 'ai', 'anthropic', base, ...packages),
  npm(`AI SDK ${version}, google`, 'ai', 'google', '`baseURL: …/v1beta`, `apiKey`', ...packages),
];

const langchain1 = ['@langchain/openai@1.6.0', '@langchain/anthropic@1.5.11', '@langchain/core@1.4.0'];
const url_field = '`configuration.baseURL: …/v1`, `apiKey`';

const agents = ['@openai/agents@0.20.0', 'openai@7.57.0', 'zod@4.1.12'];

const v1 = '`base_url=…/v1`, `api_key`';
const root = '`base_url=…`, `api_key`';

const pydantic = 'pydantic-ai-slim[openai,anthropic,google]==2.68.0';

/** Clients in the order of the table. */
export const clients: readonly Client[] = [
  npm('openai 4, chat', 'openai', 'chat', base, 'openai@4.104.0'),
  npm('openai 5, chat', 'openai', 'chat', base, 'openai@5.7.0'),
  npm('openai 6, chat', 'openai', 'chat', base, 'openai@6.49.0'),
  npm('openai 7, chat', 'openai', 'chat', base, 'openai@7.57.0'),
  npm('openai 7, responses', 'openai', 'responses', base, 'openai@7.57.0'),
  npm('@anthropic-ai/sdk 0', 'anthropic', '', bare, '@anthropic-ai/sdk@0.137.0'),
  npm('@anthropic-ai/sdk 1', 'anthropic', '', bare, '@anthropic-ai/sdk@1.12.0'),
  npm('@google/genai 2', 'google', '', google, '@google/genai@2.32.0'),
  npm('@google/genai 3', 'google', '', google, '@google/genai@3.3.0'),
  npm('@google/genai 2, files', 'google', 'files', google, '@google/genai@2.32.0'),
  ...aiSdk(5, ai5),
  ...aiSdk(6, ai6),
  ...aiSdk(7, ai7),
  npm('@langchain/openai 1', 'langchain', 'openai', url_field, ...langchain1),
  npm('@langchain/openai 1, responses', 'langchain', 'responses', `${url_field}, \`useResponsesApi\``, ...langchain1),
  npm(
    '@langchain/anthropic 1',
    'langchain',
    'anthropic',
    '`anthropicApiUrl: …`, `apiKey`',
    '@langchain/anthropic@1.5.11',
    '@langchain/core@1.4.0',
  ),
  npm(
    '@langchain/google-genai 2',
    'langchain',
    'google',
    '`baseUrl: …`, `apiKey`',
    '@langchain/google-genai@2.3.2',
    '@langchain/core@1.4.0',
  ),
  npm('@openai/agents 0', 'openai_agents', 'responses', base, ...agents),
  npm('@openai/agents 0, chat', 'openai_agents', 'chat', base, ...agents),
  npm('@openrouter/sdk 1', 'chat_sdks', 'openrouter', '`serverURL: …/v1`, `apiKey`', '@openrouter/sdk@1.3.19'),
  npm('@openrouter/ai-sdk-provider 3', 'ai', 'openrouter', base, '@openrouter/ai-sdk-provider@3.1.0', 'ai@7.0.173'),
  npm('@mistralai/mistralai 2', 'chat_sdks', 'mistral', '`serverURL: …`, `apiKey`', '@mistralai/mistralai@2.7.0'),
  npm('together-ai 0', 'chat_sdks', 'together', base, 'together-ai@0.52.0'),
  npm('LlamaIndex.TS, OpenAI', 'llamaindex', '', base, '@llamaindex/openai@0.4.23', 'llamaindex@0.12.1'),
  npm(
    '@huggingface/inference 4',
    'chat_sdks',
    'huggingface',
    '`endpointUrl: …/v1`, `accessToken`',
    '@huggingface/inference@4.13.30',
  ),
  npm('Genkit 1, OpenAI', 'genkit', '', base, '@genkit-ai/compat-oai@1.42.0', 'genkit@1.42.0'),
  npm('Mastra 1', 'mastra', '', '`url: …/v1`, `apiKey`', '@mastra/core@1.71.0', 'zod@4.1.12'),
  npm('@strands-agents/sdk 1', 'strands', '', base, '@strands-agents/sdk@1.19.0', 'openai@6.49.0', 'zod@4.1.12'),
  agent('Codex', 'codex', '`openai_base_url = "…/v1"`, `CODEX_API_KEY`', '@openai/codex@0.171.0'),
  agent('Claude Code', 'claude', '`ANTHROPIC_BASE_URL=…`, `ANTHROPIC_API_KEY`', '@anthropic-ai/claude-code@2.1.332'),
  agent('Gemini CLI', 'gemini', '`GOOGLE_GEMINI_BASE_URL=…`, `GEMINI_API_KEY`', '@google/gemini-cli@0.61.0'),
  agent('Qwen Code', 'qwen', '`OPENAI_BASE_URL=…/v1`, `OPENAI_API_KEY`', '@qwen-code/qwen-code@0.24.4'),
  agent('Cline, openai-native', 'cline_native', '`--baseurl …/v1`, `--apikey`', 'cline@3.0.65'),
  agent('Cline, openai-compatible', 'cline_compatible', '`--baseurl …/v1`, `--apikey`', 'cline@3.0.65'),
  agent('opencode', 'opencode', '`options.baseURL: …/v1`, `apiKey`', 'opencode-ai@1.18.33'),
  pypi('openai 3 (Python)', 'openai_sdk', '', v1, 'openai==3.51.0'),
  pypi('anthropic 2 (Python)', 'anthropic_sdk', '', root, 'anthropic==2.10.0'),
  pypi('google-genai 3 (Python)', 'google_genai', '', google_py, 'google-genai==3.6.1'),
  pypi('google-genai 3 (Python), files', 'google_genai', 'files', google_py, 'google-genai==3.6.1'),
  pypi('langchain-openai 1', 'langchain_models', 'openai', v1, 'langchain-openai==1.7.4'),
  pypi('langchain-anthropic 1', 'langchain_models', 'anthropic', root, 'langchain-anthropic==1.7.10'),
  pypi('langchain-google-genai 4', 'langchain_models', 'google', root, 'langchain-google-genai==4.4.3'),
  pypi('openai-agents 0', 'agents_sdk', 'responses', v1, 'openai-agents==0.24.0'),
  pypi('openai-agents 0, chat', 'agents_sdk', 'chat', v1, 'openai-agents==0.24.0'),
  pypi('pydantic-ai 2, OpenAI chat', 'pydantic_ai_sdk', 'chat', v1, pydantic),
  pypi('pydantic-ai 2, OpenAI responses', 'pydantic_ai_sdk', 'responses', v1, pydantic),
  pypi('pydantic-ai 2, Anthropic', 'pydantic_ai_sdk', 'anthropic', root, pydantic),
  pypi('pydantic-ai 2, Google', 'pydantic_ai_sdk', 'google', root, pydantic),
  pypi(
    'LlamaIndex, OpenAILike',
    'llama_index_sdk',
    '',
    '`api_base=…/v1`, `api_key`',
    'llama-index-llms-openai-like==0.8.1',
  ),
  pypi('LiteLLM 1, `openai/`', 'litellm_sdk', 'openai', '`api_base=…/v1`, `api_key`', 'litellm==1.110.2'),
  pypi('LiteLLM 1, `anthropic/`', 'litellm_sdk', 'anthropic', '`api_base=…`, `api_key`', 'litellm==1.110.2'),
  pypi('Haystack 3, OpenAI', 'haystack_sdk', '', '`api_base_url=…/v1`, `api_key`', 'haystack-ai==3.4.1'),
  pypi('smolagents 1', 'smolagents_sdk', '', '`api_base=…/v1`, `api_key`', 'smolagents[openai]==1.26.0'),
  pypi('AutoGen 0, OpenAI', 'autogen_sdk', '', v1, 'autogen-ext[openai]==0.7.5', 'autogen-agentchat==0.7.5'),
  pypi('Agno 3, OpenAI', 'agno_sdk', '', v1, 'agno==3.1.10', 'openai==3.51.0'),
  pypi(
    'Semantic Kernel 1',
    'semantic_kernel_sdk',
    '',
    '`AsyncOpenAI(base_url=…/v1, api_key)`',
    'semantic-kernel==1.45.0',
  ),
  pypi('strands-agents 1, OpenAI', 'strands_sdk', '', v1, 'strands-agents[openai]==1.62.0'),
  pypi('DSPy 3', 'dspy_sdk', '', '`api_base=…/v1`, `api_key`', 'dspy==3.4.1'),
];
