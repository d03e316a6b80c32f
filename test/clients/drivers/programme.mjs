/**
 * Runs the programme with a client: each step for each model, a line of JSON for each. A client is
 * `plain(model, prompt)` → text, `stream(model, prompt)` → pieces of text, `tools(model, prompt, tool)` → the last text,
 * and `image(model, prompt, base64)` → text; what it does not offer is left out.
 */
export const { models, steps, tool_name, image_base64 } = JSON.parse(process.env.PROGRAMME);
export const url = process.env.MEDLEY_URL;
export const key = process.env.MEDLEY_KEY;
const step_ms_max = 180_000; // Qwen Code ends an answer up to a hundred seconds after its text
const pieces_before_leaving = 3;

const tool = {
  name: tool_name,
  description: 'Returns the result of a number.',
  parameters: { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] },
  run: ({ number }) => `result-of-${number}`,
};

const prompts = Object.fromEntries(steps.map((step) => [step, `Step: ${step}.`]));

const run_step = {
  plain: (client, model) => client.plain(model, prompts.plain),
  stream: (client, model) => read(client.stream(model, prompts.stream), Infinity),
  tools: (client, model) => client.tools(model, `${prompts.tools} Call ${tool_name} until it is done.`, tool),
  image: (client, model) => client.image(model, prompts.image, image_base64),
  leave: (client, model) => read(client.stream(model, prompts.leave), pieces_before_leaving),
  overflow: (client, model) => client.plain(model, prompts.overflow),
};

const offers = { leave: 'stream', overflow: 'plain' };

export async function run(client) {
  for (const model of models) {
    for (const step of steps) {
      if (!client[offers[step] ?? step]) say({ model, step, absent: true });
      else say({ model, step, ...(await outcome(() => run_step[step](client, model))) });
    }
  }
  process.exit(0);
}

async function outcome(work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${step_ms_max / 1000} s`)), step_ms_max);
  });
  try {
    const got = await Promise.race([work(), late]);
    return typeof got === 'object' ? got : { text: String(got), pieces: 1 };
  } catch (error) {
    return { error: { class: error?.constructor?.name ?? 'unknown', message: String(error?.message ?? error) } };
  } finally {
    clearTimeout(timer);
  }
}

async function read(stream, pieces_max) {
  let text = '';
  let pieces = 0;
  for await (const piece of stream) {
    if (!piece) continue;
    text += piece;
    pieces += 1;
    if (pieces >= pieces_max) break;
  }
  return { text, pieces };
}

function say(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
