# Makes C++ of a launch: kernel<<<blocks, threads, bytes, stream>>>(arguments) becomes launch(kernel, blocks, threads, bytes, stream)(arguments)
s/([A-Za-z_0-9]+(<[A-Za-z_0-9, ]*>)?)<<<(.*)>>>\(/gputext::emulator::launch(\1, \3)(/
