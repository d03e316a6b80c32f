import type { Codec } from '../codec.ts';
import { renderConverse } from './request.ts';
import { readConverseAnswer } from './response.ts';
import { ConverseReader } from './stream.ts';

/**
 * The style of Bedrock's Converse, which all of its models of chat take; only upstreams speak it
 * (docs.aws.amazon.com/bedrock, API_runtime_Converse and the types of @aws-sdk/client-bedrock-runtime, November 2026).
 */
export const converse: Codec = {
  name: 'converse',
  upstream: {
    renderRequest: renderConverse,
    parseResponse: (body) => [readConverseAnswer(body)],
    openReader: () => new ConverseReader(),
    countedBody: ({ messages = null, system, toolConfig }) => ({
      messages,
      ...(system !== undefined && { system }),
      ...(toolConfig !== undefined && { toolConfig }),
    }),
    reports_hour_caches: true,
  },
};
