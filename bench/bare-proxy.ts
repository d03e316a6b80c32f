/** The least that a proxy on Node can be: Fastify before, undici behind, nothing looked at. For comparison. */
import { fastify } from 'fastify';
import { Pool } from 'undici';

const upstream = new Pool(`http://127.0.0.1:${process.argv[2]}`, { connections: 1_024, pipelining: 1 });
const server = fastify();

server.removeAllContentTypeParsers();
server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
server.post('/*', async (request, reply) => {
  const { body, url } = request;
  const answer = await upstream.request({
    path: url,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: Buffer.isBuffer(body) ? body : null,
  });
  reply.code(answer.statusCode).header('content-type', answer.headers['content-type']);
  return reply.send(answer.body);
});

await server.listen({ host: '127.0.0.1', port: Number(process.argv[3]) });
console.log('running');
process.on('disconnect', () => process.exit());
