/** A failure of a Responses stream whose status was already sent. */
export interface LateFailure {
  readonly message: string;
  /** The reason, or the upstream's own code. */
  readonly code: string | null;
  /** One of the codes that the API documents for a failed response, or the upstream's own. */
  readonly failedCode: string;
  /** When another attempt may succeed, if that is known. */
  readonly retryAfterMs: number | null;
  /** The `error` object of the answer that would have been sent in time. */
  readonly error: unknown;
}

/**
 * The last events of a Responses stream. Codex reads only `response.failed`, and waits as long as its message
 * indicates. OpenAI's SDKs raise their errors from `error`, and one of their helpers requires an earlier
 * `response.created`.
 */
export function responsesFrames(failure: LateFailure, model: string | null): string {
  const { message, code, error } = failure;
  const response = {
    id: `resp_${crypto.randomUUID().replaceAll('-', '')}`,
    object: 'response',
    created_at: Math.floor(Date.now() / 1_000),
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    model: model ?? '',
    output: [],
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: 'auto',
    tools: [],
    top_p: null,
  };
  const failed = {
    ...response,
    status: 'failed',
    error: { code: failure.failedCode, message: withRetryTime(failure) },
  };
  const events = [
    { type: 'response.created', sequence_number: 0, response },
    { type: 'response.failed', sequence_number: 1, response: failed },
    // Older SDKs ignore the flat form that the API documents, and raise from the nested one.
    { type: 'error', sequence_number: 2, code, message, param: null, error },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

/** The wording of OpenAI, which Codex parses. */
function withRetryTime({ message, retryAfterMs }: LateFailure): string {
  if (retryAfterMs === null || /try again in/i.test(message)) return message;
  return `${message} Please try again in ${Math.ceil(retryAfterMs / 1_000)}s.`;
}
