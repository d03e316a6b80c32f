/** A client of the suite: what is installed, the driver and its word, and all that a person sets. */
export type Client = {
  name: string;
  from: 'npm' | 'PyPI';
  /** Pinned; the first one's version is the client's. */
  packages: readonly string[];
  driver: string;
  word: string;
  setting: string;
};

const npm = (name: string, driver: string, word: string, setting: string, ...packages: string[]): Client => ({
  name,
  from: 'npm',
  packages,
  driver: `${driver}.mjs`,
  word,
  setting,
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

const v1 = '`base_url=…/v1`, `api_key`';
const root = '`base_url=…`, `api_key`';

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
  pypi('openai 3 (Python)', 'openai_sdk', '', v1, 'openai==3.51.0'),
  pypi('anthropic 2 (Python)', 'anthropic_sdk', '', root, 'anthropic==2.10.0'),
  pypi('google-genai 3 (Python)', 'google_genai', '', google_py, 'google-genai==3.6.1'),
  pypi('google-genai 3 (Python), files', 'google_genai', 'files', google_py, 'google-genai==3.6.1'),
  pypi('langchain-openai 1', 'langchain_models', 'openai', v1, 'langchain-openai==1.7.4'),
  pypi('langchain-anthropic 1', 'langchain_models', 'anthropic', root, 'langchain-anthropic==1.7.10'),
];
