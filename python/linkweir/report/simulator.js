// SPDX-License-Identifier: BSD-3-Clause
// Runs the simulator of linkweir-web in a worker of the page. Nothing is fetched: the page brings the module.
//
//     const simulator = new linkweirSimulator.Simulator(await linkweirSimulator.compiled(base85OfGzip));
//     const answer = await simulator.ask(["scenario", "one.toml", text, "want", "charts"], (simulatedS) => ...);
//
// The parts of requests and answers are described in linkweir-web's `request.rs` and `answer.rs`.
"use strict";

(() => {
  // A run that is older is given up when the next request comes; a younger one ends sooner than a new worker begins.
  const GIVEN_UP_MS = 400;

  // --- in the worker: these functions are handed over as text, and use no other name of this file ---------------------------

  function packed(parts) {
    const coder = new TextEncoder();
    const all = parts.map((part) => (typeof part === "string" ? coder.encode(part) : part));
    const bytes = new Uint8Array(all.reduce((sum, part) => sum + 4 + part.length, 0));
    const view = new DataView(bytes.buffer);
    let at = 0;
    for (const part of all) {
      view.setUint32(at, part.length, true);
      bytes.set(part, at + 4);
      at += 4 + part.length;
    }
    return bytes;
  }

  // Runs a request in an instance of the module, which must not be used again after an error of this.
  function run(instance, parts) {
    const { memory, linkweir_room, linkweir_run, linkweir_answer_at, linkweir_answer_bytes } = instance.exports;
    const request = packed(parts);
    let trap = null;
    try {
      const at = linkweir_room(request.length) >>> 0;
      new Uint8Array(memory.buffer).set(request, at);
      linkweir_run();
    } catch (error) {
      trap = error;
    }
    // After a trap the panic's sentence is there.
    const from = linkweir_answer_at() >>> 0;
    const answer = new Uint8Array(memory.buffer).slice(from, from + linkweir_answer_bytes());
    return { answer, trap };
  }

  function inWorker() {
    const PROGRESS_MS = 100;
    let module = null;
    let instance = null;
    let number = 0;
    let reported_ms = 0;
    function linkweir_progress(simulatedS) {
      if (performance.now() - reported_ms > PROGRESS_MS) {
        reported_ms = performance.now();
        postMessage({ number, simulatedS });
      }
      return 1;
    }
    onmessage = ({ data }) => {
      if (data.module) {
        module = data.module;
        return;
      }
      number = data.number;
      reported_ms = performance.now();
      instance ??= new WebAssembly.Instance(module, { env: { linkweir_progress } });
      const { answer, trap } = run(instance, data.parts);
      if (trap) instance = null;
      postMessage({ number, answer, trap: trap && String(trap) }, [answer.buffer]);
    };
  }

  // --- in the page -----------------------------------------------------------------------------------------------------

  // The parts in bytes.
  function unpacked(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const found = [];
    for (let at = 0; at < bytes.length;) {
      const length = view.getUint32(at, true);
      found.push(bytes.subarray(at + 4, at + 4 + length));
      at += 4 + length;
    }
    return found;
  }

  const BYTES = "table";
  const TEXT = ["text", "trap"];

  // An answer by name: `tables` is a list of bytes, texts are texts, all else is JSON.
  function read(bytes) {
    const decoder = new TextDecoder();
    const parts = unpacked(bytes);
    const answer = { tables: [] };
    for (let at = 0; at < parts.length; at += 2) {
      const name = decoder.decode(parts[at]);
      if (name === BYTES) answer.tables.push(parts[at + 1]);
      else if (TEXT.includes(name)) answer[name] = decoder.decode(parts[at + 1]);
      else answer[name] = JSON.parse(decoder.decode(parts[at + 1]));
    }
    return answer;
  }

  const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";

  // Bytes, from base85 of what gzip made of them: five letters, or fewer at the end, are four bytes, the first the most. The
  // letters are RFC 1924's, but a comma is in place of <, which could end a script in HTML.
  async function inflated(base85) {
    const values = new Map([...DIGITS].map((letter, value) => [letter, value]));
    const packed = new Uint8Array(Math.floor(base85.length * 4 / 5));
    for (let at = 0; at < base85.length; at += 5) {
      let word = 0;
      for (const letter of base85.slice(at, at + 5).padEnd(5, "~")) word = 85 * word + values.get(letter);
      for (let byte = 0; byte < 4; byte++) packed[at / 5 * 4 + byte] = word / 2 ** (24 - 8 * byte);
    }
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // The module, in the same form.
  const compiled = async (base85) => WebAssembly.compile(await inflated(base85));

  // One worker, which runs the newest request. `ask` gives its answer, or null if a newer request or `stop` came first.
  class Simulator {
    #module;
    #worker = null;
    #number = 0;
    #running = null;
    #waiting = null;

    constructor(module) {
      this.#module = module;
    }

    ask(parts, onProgress = () => {}) {
      this.#waiting?.resolve(null);
      const isOld = this.#running && performance.now() - this.#running.begun_ms > GIVEN_UP_MS;
      if (isOld) this.#giveUp();
      return new Promise((resolve, reject) => {
        this.#waiting = { parts, onProgress, resolve, reject };
        if (!this.#running) this.#next();
      });
    }

    // Ends what runs, and forgets what waits.
    stop() {
      this.#waiting?.resolve(null);
      this.#waiting = null;
      if (this.#running) this.#giveUp();
    }

    #giveUp() {
      this.#worker.terminate();
      this.#worker = null;
      this.#running.resolve(null);
      this.#running = null;
    }

    #next() {
      const request = this.#waiting;
      if (!request) return;
      this.#waiting = null;
      this.#running = request;
      request.begun_ms = performance.now();
      request.number = ++this.#number;
      this.#worker ??= this.#begun();
      this.#worker.postMessage({ number: request.number, parts: request.parts });
    }

    #begun() {
      const source = [packed, run, `(${inWorker})();`].join("\n");
      const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      const worker = new Worker(address);
      URL.revokeObjectURL(address);
      worker.postMessage({ module: this.#module });
      worker.onmessage = ({ data }) => this.#heard(worker, data);
      worker.onerror = (event) => {
        event.preventDefault();
        this.#failed(worker, event.message);
      };
      return worker;
    }

    #heard(worker, { number, simulatedS, answer, trap }) {
      const request = this.#running;
      if (worker !== this.#worker || number !== request?.number) return;
      if (simulatedS !== undefined) {
        request.onProgress(simulatedS);
        return;
      }
      this.#running = null;
      if (trap) request.reject(new Error(read(answer).trap ?? trap));
      else request.resolve(read(answer));
      this.#next();
    }

    // The worker itself failed, for example without memory.
    #failed(worker, message) {
      if (worker !== this.#worker) return;
      worker.terminate();
      this.#worker = null;
      this.#running?.reject(new Error(message));
      this.#running = null;
      this.#next();
    }
  }

  globalThis.linkweirSimulator = { Simulator, compiled, inflated, packed, run, unpacked, read };
})();
