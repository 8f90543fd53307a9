import type { RecordedProvider, RecordedRefusal } from '../seen-refusal.ts';

const GEMINI_MESSAGE =
  'You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 20, model: gemini-2.5-flash\nPlease retry in 15.06s.';

/** As Gemini writes it, with its quotas and a delay. */
function gemini(quotaIds: readonly string[], retryDelay: string, message = GEMINI_MESSAGE): object {
  const violations = quotaIds.map((quotaId) => ({
    quotaMetric: 'generativelanguage.googleapis.com/generate_content_free_tier',
    quotaId,
    quotaDimensions: { location: 'global', model: 'gemini-2.5-flash' },
    quotaValue: '20',
  }));
  const details = [
    {
      '@type': 'type.googleapis.com/google.rpc.Help',
      links: [{ description: 'Learn more about Gemini API quotas', url: 'https://ai.google.dev' }],
    },
    { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations },
    { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
  ];
  return { error: { code: 429, message, status: 'RESOURCE_EXHAUSTED', details } };
}

const PER_DAY = 'GenerateRequestsPerDayPerProjectPerModel-FreeTier';
const PER_MINUTE = 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier';
const TOKENS = 'GenerateContentInputTokensPerModelPerMinute-FreeTier';

function google(code: number, message: string, status: string): string {
  return JSON.stringify({ error: { code, message, status } });
}

const GOOGLE_REFUSALS: readonly RecordedRefusal[] = [
  {
    name: 'requests per minute',
    upstreamId: 'gemini',
    status: 429,
    body: JSON.stringify(gemini([PER_MINUTE], '15s')),
    kind: 'requests',
    retryAfterMs: 15_000,
  },
  {
    name: 'input tokens per minute, as an array',
    upstreamId: 'gemini',
    status: 429,
    body: JSON.stringify([gemini([TOKENS], '14.500s')]),
    kind: 'tokens',
    retryAfterMs: 14_500,
  },
  {
    name: 'requests per day, with a delay that is not true',
    upstreamId: 'gemini',
    status: 429,
    body: JSON.stringify(gemini([TOKENS, PER_MINUTE, PER_DAY], '15s')),
    kind: 'long_window',
  },
  {
    name: 'inside a message of its OpenAI-shaped route',
    upstreamId: 'gemini',
    status: 429,
    body: JSON.stringify({
      error: { message: JSON.stringify(gemini([PER_MINUTE], '9s'), null, 2), code: 429 },
    }),
    kind: 'requests',
    retryAfterMs: 9_000,
  },
  {
    name: 'a plan without the model',
    upstreamId: 'gemini',
    status: 429,
    body: JSON.stringify(gemini([PER_MINUTE], '20s', GEMINI_MESSAGE.replace('20', '0'))),
    kind: 'quota',
    retryAfterMs: 20_000,
  },
  {
    name: 'capacity, 429',
    upstreamId: 'gemini',
    status: 429,
    body: google(429, 'Resource has been exhausted (e.g. check quota).', 'RESOURCE_EXHAUSTED'),
    kind: 'overload',
  },
  {
    name: 'capacity, 503',
    upstreamId: 'gemini',
    status: 503,
    body: google(503, 'The model is overloaded. Please try again later.', 'UNAVAILABLE'),
    kind: 'overload',
  },
  {
    name: 'capacity, by reason',
    upstreamId: 'gemini',
    status: 429,
    body: JSON.stringify({
      error: {
        code: 429,
        message: 'No room.',
        status: 'RESOURCE_EXHAUSTED',
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            reason: 'MODEL_CAPACITY_EXHAUSTED',
          },
          { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '3s' },
        ],
      },
    }),
    kind: 'overload',
    retryAfterMs: 3_000,
  },
  {
    name: 'the newer API, day',
    upstreamId: 'gemini',
    status: 429,
    body: '{"error":{"code":"quota_exceeded","message":"Come back later."}}',
    kind: 'long_window',
  },
  ...['rate_limit_exceeded', 'too_many_requests'].map((code) => ({
    name: `the newer API, ${code}`,
    upstreamId: 'gemini',
    status: 429,
    body: JSON.stringify({ error: { code, message: 'Come back later.' } }),
    kind: 'unknown' as const,
  })),
  {
    name: 'Vertex, pay as you go',
    upstreamId: 'eu',
    host: 'europe-west4-aiplatform.googleapis.com',
    status: 429,
    body: google(429, 'Resource exhausted, please try again later.', 'RESOURCE_EXHAUSTED'),
    kind: 'overload',
  },
  {
    name: 'Vertex, provisioned',
    upstreamId: 'vertex',
    status: 429,
    body: google(
      429,
      'Too many requests. Exceeded the Provisioned Throughput.',
      'RESOURCE_EXHAUSTED',
    ),
    kind: 'overload',
  },
  {
    name: 'Vertex, requests per minute',
    upstreamId: 'vertex',
    status: 429,
    body: google(
      429,
      'Quota exceeded for aiplatform.googleapis.com/generate_content_requests_per_minute_per_project_per_base_model with base model: gemini-pro. Please submit a quota increase request.',
      'RESOURCE_EXHAUSTED',
    ),
    kind: 'requests',
  },
];

function azure(which: string, seconds: number): string {
  const message = `Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded ${which} rate limit of your current OpenAI S0 pricing tier. Please retry after ${seconds} seconds. Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit.`;
  return JSON.stringify({ error: { code: '429', message } });
}

const AZURE_HOST = 'contoso.openai.azure.com';

const AZURE_REFUSALS: readonly RecordedRefusal[] = [
  ...(
    [
      ['Out of call volume quota. Quota will be replenished in 02:13:45.', 8_025_000],
      ['Out of bandwidth quota. Quota will be replenished in 1.02:00:00.', 93_600_000],
      ['Token quota is exceeded. Try again in 3600 seconds.', 3_600_000],
    ] as const
  ).map(([message, retryAfterMs]) => ({
    name: `API Management: ${message}`,
    upstreamId: 'azure',
    status: 403,
    body: JSON.stringify({ statusCode: 403, message }),
    kind: 'long_window' as const,
    scope: 'credential' as const,
    retryAfterMs,
  })),
  {
    name: 'tokens',
    status: 429,
    headers: { 'retry-after-ms': '3800', 'retry-after': '4' },
    body: azure('token', 4),
    kind: 'tokens' as const,
    retryAfterMs: 3_800,
  },
  {
    name: 'requests, told by the text alone',
    status: 429,
    body: azure('call', 4),
    kind: 'requests' as const,
    retryAfterMs: 4_000,
  },
  {
    name: 'a rate limit of a day',
    status: 429,
    headers: { 'x-ms-retry-after-ms': '86400000' },
    body: azure('token', 4),
    kind: 'long_window' as const,
    retryAfterMs: 86_400_000,
  },
].map((row) => ({ ...row, upstreamId: 'gpt', host: AZURE_HOST }));

const BEDROCK_HOST = 'bedrock-runtime.eu-central-1.amazonaws.com';
const AWS_TYPE = { 'x-amzn-errortype': 'ThrottlingException:http://internal.amazon.com/coral/' };

const BEDROCK_REFUSALS: readonly RecordedRefusal[] = [
  {
    name: 'throttling with 400, as gateways of its kind send it',
    status: 400,
    headers: AWS_TYPE,
    body: '{"message":"Rate exceeded"}',
    kind: 'requests' as const,
  },
  {
    name: 'connections',
    status: 503,
    body: '{"message":"Too many connections, please wait before trying again."}',
    kind: 'concurrency' as const,
  },
  {
    name: 'tokens',
    status: 429,
    headers: AWS_TYPE,
    body: '{"message":"Too many tokens, please wait before trying again."}',
    kind: 'tokens' as const,
  },
  {
    name: 'requests',
    status: 429,
    headers: AWS_TYPE,
    body: '{"message":"Too many requests, please wait before trying again."}',
    kind: 'requests' as const,
  },
  {
    name: 'tokens per day',
    status: 429,
    headers: AWS_TYPE,
    body: '{"message":"Too many tokens per day, please wait before trying again."}',
    kind: 'long_window' as const,
  },
  {
    name: 'a model that is not ready, by header',
    status: 429,
    headers: { 'x-amzn-errortype': 'ModelNotReadyException:http://internal.amazon.com/coral/' },
    body: '{"message":"The model is not ready."}',
    kind: 'overload' as const,
  },
  {
    name: 'a model that is not ready, by body',
    status: 429,
    body: '{"__type":"com.amazon.coral.service#ModelNotReadyException","message":"Not ready."}',
    kind: 'overload' as const,
  },
  {
    name: 'another exception',
    status: 429,
    body: '{"__type":"ServiceQuotaExceededException","message":"Exceeded."}',
    kind: 'unknown' as const,
  },
].map((row) => ({ ...row, upstreamId: 'aws', host: BEDROCK_HOST }));

export const SEEN: RecordedProvider = {
  refusals: [...GOOGLE_REFUSALS, ...AZURE_REFUSALS, ...BEDROCK_REFUSALS],
};
