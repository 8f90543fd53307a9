/** An event at an instant of the virtual clock. */
interface Due {
  readonly at: number;
  /** Of the same instant, what was planned first happens first. */
  readonly sequence: number;
  readonly work: () => void;
}

/** A virtual clock with a heap of what is due: hours pass in milliseconds. */
export class Clock {
  now = 0;
  readonly #heap: Due[] = [];
  #sequence = 0;

  after(ms: number, work: () => void): void {
    this.at(this.now + ms, work);
  }

  at(at: number, work: () => void): void {
    const heap = this.#heap;
    const due = { at: Math.max(at, this.now), sequence: this.#sequence++, work };
    let index = heap.push(due) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      if (!isBefore(due, heap[above])) break;
      swap(heap, index, above);
      index = above;
    }
  }

  /** Lets everything happen that is due by `at`, and stops there. */
  runTo(at: number): void {
    for (let next = this.#heap[0]; next !== undefined && next.at <= at; next = this.#heap[0]) {
      this.#removeFirst();
      this.now = next.at;
      next.work();
    }
    this.now = at;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    swap(heap, 0, heap.length - 1);
    heap.pop();
    for (let index = 0; ;) {
      let least = index;
      for (const below of [2 * index + 1, 2 * index + 2]) {
        if (isBefore(heap[below], heap[least])) least = below;
      }
      if (least === index) return;
      swap(heap, index, least);
      index = least;
    }
  }
}

function isBefore(a: Due | undefined, b: Due | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  return a.at < b.at || (a.at === b.at && a.sequence < b.sequence);
}

function swap(heap: Due[], one: number, two: number): void {
  const [first, second] = [heap[one], heap[two]];
  if (first === undefined || second === undefined) return;
  heap[one] = second;
  heap[two] = first;
}
