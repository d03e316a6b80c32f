/** LiteLLM's own copy, which its releases have too (seen in November 2026, version 1.110.2). */
export const default_price_list =
  'https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json';
