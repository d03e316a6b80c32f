import { sampleFile, startImitation, type Imitation, type Reply } from './imitation.ts';

/** A server of OpenAI's style for images on one's own machine, as LocalAI is: no key, names without prices. */
export async function startImageServer(): Promise<Imitation> {
  const image = (await sampleFile('image')).toString('base64');
  return startImitation({
    roleOf: ({ path }) => (path === '/v1/images/generations' ? 'submit' : 'poll'),
    answer: ({ path, json }): Reply => {
      if (path === '/v1/models')
        return { json: { object: 'list', data: [{ id: 'stable-diffusion-3.5', object: 'model' }] } };
      if (path !== '/v1/images/generations') return { status: 404, json: { error: { message: 'Not found' } } };
      const n = typeof json['n'] === 'number' ? json['n'] : 1;
      return { json: { created: 1_780_000_000, data: Array.from({ length: n }, () => ({ b64_json: image })) } };
    },
  });
}
