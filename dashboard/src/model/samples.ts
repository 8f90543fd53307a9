/** Example configurations, one for each format that an import accepts. */
export const SAMPLES = [
  {
    name: 'Two groups',
    text: `# One group for each shared quota. Omitted fields have defaults.
groups:
  - name: openai-shared
    match: { models: ['gpt-4o*', 'o1-*'] }
    limits: { max_concurrency: 5, rpm: 50, tpm: 10000 }
  - name: anthropic-batch
    match: { upstreams: [anthropic] }
    limits: { max_concurrency: 20 }
    queue: { timeout_ms: 120000, lane_rules: [{ models: ['*haiku*'], lane: low }] }
    fairness: { by: [caller, agent] }
`,
  },
  {
    name: 'Concurrency groups, as other systems write them',
    text: `# Replaces the groups only.
concurrency_groups:
  - { name: openai-shared, max_concurrency: 5, models: [gpt-4o, o1-*] }
  - { name: glm, max_concurrency: 2, providers: [z.ai] }
`,
  },
  {
    name: 'Rate limits by model, as other systems write them',
    text: `[
  { "model": "gpt-4", "rate_limit": { "rpm": 50, "tpm": 10000 } },
  { "model": "gpt-4o-mini", "rate_limit": { "rpm": 500 } }
]
`,
  },
] as const;
