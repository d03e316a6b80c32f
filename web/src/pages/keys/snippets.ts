/** Ready to be pasted: the first two have the key in them, the others read it from the environment. */
export function snippetsOf(base_url: string, secret: string, models: { image: string; chat: string }) {
  return [
    { name: '.env', text: `MEDLEY_API_KEY=${secret}\nMEDLEY_BASE_URL=${base_url}` },
    {
      name: 'curl',
      text: `curl -sS '${base_url}/v1/generate?wait=60' \\
  -H 'Authorization: Bearer ${secret}' \\
  -H 'Content-Type: application/json' \\
  -d '{"model":"${models.image}","input":{"prompt":"A red bicycle"}}'`,
    },
    {
      name: 'OpenAI, Python',
      text: `import os
from openai import OpenAI

client = OpenAI(base_url="${base_url}/v1", api_key=os.environ["MEDLEY_API_KEY"])
answer = client.chat.completions.create(
    model="${models.chat}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
    },
    {
      name: 'OpenAI, Node',
      text: `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base_url}/v1', apiKey: process.env.MEDLEY_API_KEY });
const answer = await client.chat.completions.create({
  model: '${models.chat}',
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(answer.choices[0].message.content);`,
    },
    {
      name: 'Anthropic, Python',
      text: `import os
from anthropic import Anthropic

client = Anthropic(base_url="${base_url}", api_key=os.environ["MEDLEY_API_KEY"])
answer = client.messages.create(
    model="${models.chat}",
    max_tokens=500,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content[0].text)`,
    },
    {
      name: 'Anthropic, Node',
      text: `import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: '${base_url}', apiKey: process.env.MEDLEY_API_KEY });
const answer = await client.messages.create({
  model: '${models.chat}',
  max_tokens: 500,
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(answer.content[0].text);`,
    },
  ];
}
