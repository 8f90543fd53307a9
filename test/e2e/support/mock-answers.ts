import type { LLMock } from '@copilotkit/aimock';

/** Answer of the mock to everything. Several chunks long. */
export const MOCK_ANSWER =
  'A gate decides how much water a canal takes, and the river keeps the rest.';

/** Teaches the mock one answer for each kind of call. */
export function prepareMock(mock: LLMock): LLMock {
  const anything = /[\s\S]*/;
  return mock
    .onMessage(anything, {
      content: MOCK_ANSWER,
      usage: {
        prompt_tokens: 9,
        completion_tokens: 17,
        total_tokens: 26,
        input_tokens: 9,
        output_tokens: 17,
      },
    })
    .onEmbedding(anything, { embedding: [0.25, -0.5, 0.125] })
    .onImage(anything, { image: { b64Json: 'aW1hZ2U=' } })
    .onSpeech(anything, { audio: 'c3BlZWNo' })
    .onTranscription({ transcription: { text: MOCK_ANSWER } });
}
