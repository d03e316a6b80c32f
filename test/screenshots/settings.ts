/** Failing deliveries come to their end within seconds while the world is made, and are shown as usual after it. */
import { limits } from '../helpers/catalog.ts';
export const settingsYaml = (retry_delays: string): string => `
version: 1
currencies: { USD: "1", EUR: "0.92", PLN: "3.65" }
${limits({ chat_per_minute: 100_000 })}
net: { allow: ["127.0.0.0/8"] }
webhooks: { retry_delays: [${retry_delays}] }
billing:
  issuer:
    name: Medley Hosting Ltd
    address: "1 Example Street\\nLondon"
    tax_id: GB123456789
    tax_percent: "20"
  top_up_text: "Send a transfer to Medley Hosting Ltd, GB33BUKB20201555555555, with the name of your account. It arrives within a day."
providers:
  studio: { adapter: sandbox }
  reserve: { adapter: sandbox }
${models}`;

const models = `models:
  - id: studio/poster
    kind: image
    name: Studio poster
    description: Posters in two formats, made by the sandbox.
    input_schema:
      type: object
      required: [prompt]
      additionalProperties: false
      properties:
        prompt: { type: string, title: Prompt, description: What the poster shows., minLength: 1, maxLength: 2000 }
        format: { enum: [square, tall], title: Format, default: square }
        count: { type: integer, title: Number of posters, minimum: 1, maximum: 4, default: 1 }
    price:
      - { unit: image, amount: "0.055", when: { format: [tall] } }
      - { unit: image, amount: "0.04" }
    estimate: { image: $input.count }
    routes:
      - id: studio
        provider: studio
        upstream_model: image
        input: { prompt: $input.prompt, n: $input.count, width: { $lookup: $input.format, square: 640, tall: 480 }, height: 640 }
        cost: [{ unit: image, amount: "0.025" }]
      - id: reserve
        provider: reserve
        upstream_model: image
        input: { prompt: $input.prompt, n: $input.count, width: { $lookup: $input.format, square: 640, tall: 480 }, height: 640 }
        cost: [{ unit: image, amount: "0.045" }]
  - id: studio/clip-with-a-remarkably-long-name-2.1-preview
    kind: video
    name: Studio clip with a remarkably long name 2.1 (preview)
    input_schema:
      type: object
      required: [prompt]
      additionalProperties: false
      properties:
        prompt: { type: string, title: Prompt, minLength: 1, maxLength: 2000 }
        duration: { type: number, title: Duration, description: In seconds., minimum: 1, maximum: 10, default: 3 }
    price: [{ unit: second, amount: "0.11" }]
    estimate: { second: $input.duration }
    routes:
      - { provider: studio, upstream_model: video, input: { $spread: $input }, cost: [{ unit: second, amount: "0.08" }] }
  - id: studio/assistant
    kind: chat
    name: Studio assistant
    description: Answers questions and uses tools, made by the sandbox.
    capabilities: [tools, json_schema, streaming]
    limits: { context_tokens: 200000 }
    max_output_tokens: 16384
    price:
      - { unit: input_token, per: 1000000, amount: "2.50" }
      - { unit: cached_input_token, per: 1000000, amount: "0.25" }
      - { unit: output_token, per: 1000000, amount: "10.00" }
    routes:
      - { provider: studio, upstream_model: chat, cost: [{ unit: input_token, per: 1000000, amount: "1.25" }, { unit: output_token, per: 1000000, amount: "7.50" }] }
`;
