/** The whole text of an answer; null: it is longer than that, and the rest of it is not read. */
export async function textWithin(answer: Response, bytesMax: number): Promise<string | null> {
  const { body } = answer;
  if (body === null) return '';
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let left = bytesMax;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    left -= value.length;
    if (left < 0) {
      await reader.cancel();
      return null;
    }
    text += decoder.decode(value, { stream: true });
  }
}
