/** The eight words of an address as `URL` writes it: lower-case hexadecimal, one `::` at most. */
export function v6Words(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const words = (text: string) =>
    text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16));
  if (tail === undefined) return words(head);
  const [start, end] = [words(head), words(tail)];
  return [...start, ...Array<number>(8 - start.length - end.length).fill(0), ...end];
}
